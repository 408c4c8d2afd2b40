"""Why the device (on CPU training: the main thread outside ops) was idle: one root cause for every nanosecond.

A gap on the device ends when work starts. If that work was launched before the gap began, it waited on the device's
side: for its scheduling, or for something the recording does not show; where the main thread sat in a blocking call
meanwhile, that call is named, as inferred. Otherwise the host was late, and what the launching thread did until the
launch is the cause (where that thread shows nothing, what the main thread did).

A host that waits for the device loses its lead: had it not waited, it would have been as far ahead as the wait was
long. So after a blocking call, later launch and host gaps count as ``sync`` until the time that the call spent
waiting for a busy device is used up. Loader, preprocessing and the like keep their own name.
"""

from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.busy import busy_of_window
from slipstream.analysis.exchange_waits import exchange_waits
from slipstream.analysis.painting import (
    Longs,
    Painted,
    complement,
    covered,
    inside,
    layer,
    merge,
    nothing,
    outside,
    paint,
)
from slipstream.analysis.step_marks import step_at
from slipstream.analysis.thread_activity import DISPATCH, LABEL, PYTHON, WAITING, ThreadActivity
from slipstream.model import CAUSES, NotEnoughData
from slipstream.store import Tables

SILENT = 103
"""Label of a moment for which no row tells what the host did."""
QUEUED = 104
"""Label of a gap before work that had been launched already."""
QUEUED_WAITING = 105
"""Label of such a gap while the main thread waited for the device in a blocking call."""
LONG_DISPATCH_NS = 1_000_000
"""An op or runtime call that holds the host longer does more than launch: it loads modules, tunes, sets up."""
SHORT_NS = 50_000
"""Between ops that launch work, Python and framework time up to this is part of launching op by op;
queued work that starts within it waited for no more than the device's own scheduling."""


class _Gaps(msgspec.Struct, frozen=True):
    """Idle gaps of the device; arrays of one length."""

    start: Longs
    end: Longs
    launched: Longs
    """end of the call that launched the work which ends the gap; the gap's end when it is not known"""
    thread: Longs
    """thread of that launch, else the main thread; -1: none"""


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``idle_spans``.

    Raises:
        NotEnoughData: it is not known when the device was busy.
    """
    window = tables.row("window")
    if window["busy_ns"] is None:
        raise NotEnoughData("the device's work is missing from this recording, so its idle time is unknown")
    start, end = cast(int, window["start_ns"]), cast(int, window["end_ns"])
    idle = complement(busy_of_window(tables), start, end, 0)
    activity = ThreadActivity(tables)
    if window["on_device"]:
        gaps = _gaps(tables, idle, cast("int | None", window["main_thread"]))
        cut, thread_of = _pieces_on_device(tables, gaps, activity)
        pieces, inferred = _settle(cut, _waits(tables, idle, end))
        thread = thread_of[np.searchsorted(cut.start, pieces.start, side="right") - 1]
        pieces = _end_of_data(tables, pieces)
    else:
        pieces, inferred, thread = _pieces_on_host(tables, idle, activity)
    return _table(tables, pieces, inferred, thread)


def _gaps(tables: Tables, idle: Painted, main_thread: int | None) -> _Gaps:
    """Each gap with the launch of the work that ends it."""
    work = tables["device_work"].sort("ts_ns", "launch_ts_ns")
    begin = work["ts_ns"].to_numpy()
    none = -1 if main_thread is None else main_thread
    if not work.height:
        return _Gaps(idle.start, idle.end, idle.end, np.full(len(idle), none))
    index = np.minimum(np.searchsorted(begin, idle.end), work.height - 1)
    ends_it = begin[index] == idle.end
    called = work["launch_ts_ns"].fill_null(np.iinfo(np.int64).max).to_numpy()[index]
    launched = called + work["launch_dur_ns"].fill_null(0).to_numpy()[index]
    known = ends_it & (called <= idle.end)
    thread = work["launch_thread"].fill_null(none).cast(pl.Int64).to_numpy()[index]
    return _Gaps(idle.start, idle.end, np.where(known, launched, idle.end), np.where(known, thread, np.int64(none)))


def _pieces_on_device(tables: Tables, gaps: _Gaps, activity: ThreadActivity) -> tuple[Painted, Longs]:
    """Cut every gap by what the host did; the thread that was looked at, per piece."""
    late_end = np.clip(gaps.launched, gaps.start, gaps.end)
    main = cast("int | None", tables.row("window")["main_thread"])
    queued = _queued(paint(late_end, gaps.end, QUEUED), nothing() if main is None else activity.on_thread(main))
    parts: list[Painted] = [queued]
    threads: list[Longs] = [np.full(len(queued), -1 if main is None else main, np.int64)]
    driving = tables["runtime"]["thread"].drop_nulls().unique().sort().to_list()
    for thread in np.unique(gaps.thread):
        mine = gaps.thread == thread
        late = paint(gaps.start[mine], late_end[mine], SILENT)
        # A thread that waits for another shows nothing: then the other, one that drives the device as well, tells.
        looked_at = dict.fromkeys((int(thread), main, *driving))
        seen = [activity.on_thread(who) for who in looked_at if who is not None and who >= 0]
        pieces, _ = inside(layer(seen) if seen else nothing(), late)
        filled = merge([pieces, outside(late, pieces)])
        if not seen:
            filled = msgspec.structs.replace(filled, label=np.full(len(filled), LABEL["unattributed"]))
        parts.append(filled)
        threads.append(np.full(len(filled), thread, np.int64))
    order = np.argsort(np.concatenate([part.start for part in parts]), kind="stable")
    return merge(parts), np.concatenate(threads)[order]


def _queued(gaps: Painted, main: Painted) -> Painted:
    """Gaps before launched work; long ones are cut by the blocking calls of the main thread."""
    long = gaps.end - gaps.start > SHORT_NS
    waiting, _ = inside(main.take(main.label == WAITING), gaps.take(long))
    waiting = msgspec.structs.replace(waiting, label=np.full(len(waiting), QUEUED_WAITING))
    return merge([waiting, outside(gaps, waiting)])


def _waits(tables: Tables, idle: Painted, window_end: int) -> pl.DataFrame:
    """Blocking calls with the time each spent waiting while the device was busy (``lost_ns``)."""
    if not tables.has("blocking_calls"):
        return pl.DataFrame(schema={"event": pl.Int64, "end_ns": pl.Int64, "lost_ns": pl.Int64})
    calls = tables["blocking_calls"].filter(pl.col("ts_ns") < window_end).sort("ts_ns")
    start = calls["ts_ns"].to_numpy()
    end = start + calls["dur_ns"].to_numpy()
    lost = (end - start) - covered(idle, start, end)
    return pl.DataFrame({"event": calls["event"].cast(pl.Int64), "end_ns": end, "lost_ns": lost}).sort("end_ns")


def _settle(pieces: Painted, waits: pl.DataFrame) -> tuple[Painted, npt.NDArray[np.bool_]]:
    """Turn what threads did into causes, spending the time lost in blocking calls on the gaps after them."""
    length = pieces.end - pieces.start
    queued = pieces.label == QUEUED
    waited = np.isin(pieces.label, (WAITING, QUEUED_WAITING))
    label = np.where(waited, LABEL["sync"], pieces.label)
    label = np.where(queued, np.where(length <= SHORT_NS, LABEL["launch"], LABEL["unattributed"]), label)
    dispatched = np.where(length <= LONG_DISPATCH_NS, LABEL["launch"], LABEL["host"])
    label = np.where(label == DISPATCH, dispatched, label)
    vague = (label == PYTHON) | (label == SILENT)
    inferred = (label == SILENT) | (pieces.label == QUEUED_WAITING)
    label = np.where(vague, np.where(length <= SHORT_NS, LABEL["launch"], LABEL["host"]), label)
    open_to_sync = ~queued & ((label == LABEL["launch"]) | (label == LABEL["host"]))
    settled = msgspec.structs.replace(pieces, label=label)
    return _spend(settled, inferred, open_to_sync, waits)


def _spend(
    pieces: Painted, inferred: npt.NDArray[np.bool_], open_to_sync: npt.NDArray[np.bool_], waits: pl.DataFrame
) -> tuple[Painted, npt.NDArray[np.bool_]]:
    """Let lost time pay for later gaps, the latest call first; a gap paid in part is cut in two."""
    waits = waits.filter(pl.col("lost_ns") > 0)
    lost, events = waits["lost_ns"].to_list(), waits["event"].to_list()
    whole = np.stack([pieces.start, pieces.end, pieces.label, pieces.event, inferred.astype(np.int64)], axis=1)
    # First piece that sees each wait. As long as no lost time is left, pieces stay what they are: those are taken over
    # at once, since most recordings have many gaps and few waits.
    seen = np.searchsorted(pieces.start, waits["end_ns"].to_numpy()).tolist()
    parts: list[Longs] = []
    purse: list[list[int]] = []
    arrived, place = 0, 0
    while place < len(whole):
        following = seen[arrived] if arrived < len(seen) else len(whole)
        if not purse and following > place:
            parts.append(whole[place:following])
            place = following
            continue
        rows: list[tuple[int, int, int, int, int]] = []
        while place < len(whole):
            while arrived < len(seen) and seen[arrived] <= place:
                purse.append([events[arrived], lost[arrived]])
                arrived += 1
            if not purse:
                break
            begin, finish, what, shown, guessed = whole[place].tolist()
            while open_to_sync[place] and purse and begin < finish:
                paid = min(purse[-1][1], finish - begin)
                rows.append((begin, begin + paid, LABEL["sync"], purse[-1][0], 0))
                begin += paid
                purse[-1][1] -= paid
                if not purse[-1][1]:
                    purse.pop()
            if begin < finish:
                rows.append((begin, finish, what, shown, guessed))
            place += 1
        parts.append(np.array(rows, np.int64).reshape(-1, 5))
    if not parts:
        return nothing(), np.empty(0, bool)
    columns = np.concatenate(parts).T
    return Painted(start=columns[0], end=columns[1], label=columns[2], event=columns[3]), columns[4].astype(bool)


def _end_of_data(tables: Tables, pieces: Painted) -> Painted:
    """A loader that is asked after the last launch only says that there is no more."""
    last = cast("int | None", tables["device_work"]["launch_ts_ns"].max())
    if last is None:
        return pieces
    over = (pieces.label == LABEL["loader"]) & (pieces.start > last)
    return msgspec.structs.replace(pieces, label=np.where(over, LABEL["end_of_data"], pieces.label))


def _pieces_on_host(
    tables: Tables, idle: Painted, activity: ThreadActivity
) -> tuple[Painted, npt.NDArray[np.bool_], Longs]:
    """On CPU training: what the main thread did outside ops."""
    main = cast("int | None", tables.row("window")["main_thread"])
    seen, _ = inside(activity.on_thread(main), idle) if main is not None else (nothing(), None)
    silent = msgspec.structs.replace(outside(idle, seen), label=np.full(len(outside(idle, seen)), SILENT))
    pieces = merge([seen, silent])
    host = np.isin(pieces.label, (SILENT, PYTHON, DISPATCH, WAITING))
    if main is not None:
        vague, waits = pieces.take(host), exchange_waits(tables, idle, main)
        waited, which = inside(vague, waits)
        waited = msgspec.structs.replace(
            waited, label=np.full(len(waited), LABEL["comm_wait"]), event=waits.event[which]
        )
        pieces = merge([pieces.take(~host), outside(vague, waits), waited])
    inferred = (pieces.label == SILENT) | (pieces.label == LABEL["comm_wait"])
    host = np.isin(pieces.label, (SILENT, PYTHON, DISPATCH, WAITING))
    pieces = msgspec.structs.replace(pieces, label=np.where(host, LABEL["host"], pieces.label))
    return pieces, inferred, np.full(len(pieces), -1 if main is None else main, np.int64)


def _table(tables: Tables, pieces: Painted, inferred: npt.NDArray[np.bool_], thread: Longs) -> pl.DataFrame:
    causes = pl.Series(values=list(CAUSES), dtype=pl.String)
    frame = pl.DataFrame(
        {
            "start_ns": pieces.start,
            "dur_ns": pieces.end - pieces.start,
            "cause": causes.gather(pieces.label.tolist()),
            "inferred": inferred,
            "thread": thread,
            "event": pl.Series(pieces.event).replace(-1, None),
        }
    )
    return frame.with_columns(step=step_at(tables, pieces.start), thread=pl.col("thread").replace(-1, None))
