"""Calls that wait for the device: they end when what they wait for ends."""

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.graph.edges import SYNC
from slipstream.analysis.graph.host_time import HostTime
from slipstream.analysis.graph.nodes import Longs
from slipstream.analysis.graph.waits import Waits
from slipstream.store import Tables

WHOLE_DEVICE = r"(?:cuda|hip|mu)(?:Device|Ctx)Synchronize|cuCtxSynchronize"
"""Calls that wait for all streams."""


def device_waits(tables: Tables, host: HostTime) -> Waits:
    """Find what each blocking call waited for.

    A copy that blocks waits for itself, a read-back for its copy - unless the call returned before the copy's end (one
    from pageable memory returns once it is staged). A synchronisation waits for what was launched
    before it: on its stream, where a row of the device tells that stream, else wherever it ended last before the
    call's return. Work that had ended when the call began was not waited for.
    """
    nothing = np.empty(0, np.int64)
    if not tables.has("blocking_calls") or not tables["blocking_calls"].height:
        return Waits(
            kind=SYNC,
            segment=nothing,
            from_ns=nothing,
            until_ns=nothing,
            work=nothing,
            releasing=nothing,
            front=nothing.astype(bool),
        )
    calls = _with_streams(tables, tables["blocking_calls"].sort("ts_ns"))
    work = tables["device_work"].with_row_index("row")
    source = _copies(calls, work)
    unknown = np.flatnonzero(source < 0)
    for stream in calls["wait_stream"][unknown.tolist()].unique().to_list():
        of_stream = calls["wait_stream"].eq_missing(pl.Series([stream], dtype=pl.Int64)).to_numpy()
        mine = unknown[of_stream[unknown]]
        source[mine] = _last_ended(
            calls[mine.tolist()], work if stream is None else work.filter(pl.col("stream") == stream)
        )
    end = (work["ts_ns"] + work["dur_ns"]).to_numpy()
    segment = host.of_event(calls["event"], last=True)
    found = np.flatnonzero((source >= 0) & (segment >= 0))
    found = found[end[source[found]] > host.start[segment[found]]]
    since, front = _begun(calls[found.tolist()], work, source[found], host.start[segment[found]])
    return Waits(
        kind=SYNC,
        segment=segment[found],
        from_ns=since,
        until_ns=end[source[found]],
        work=source[found],
        releasing=np.full(len(found), -1, np.int64),
        front=front,
    )


def also_awaited(tables: Tables, host: HostTime) -> tuple[Longs, Longs]:
    """What blocking calls would have waited for, had it not been done: it held nobody up here, but may after a change.

    Returns:
        Segments of calls, and the row of ``device_work`` that each had to see done: of a synchronisation of the whole
        device the last task that each stream had been given, of other calls what they are known to wait for.
    """
    nothing = np.empty(0, np.int64)
    if not tables.has("blocking_calls") or not tables["blocking_calls"].height:
        return nothing, nothing
    calls = _with_streams(tables, tables["blocking_calls"].sort("ts_ns"))
    work = tables["device_work"].with_row_index("row")
    segment = host.of_event(calls["event"], last=True)
    source = _copies(calls, work)
    known = np.flatnonzero((source >= 0) & (segment >= 0))
    segments, rows = [segment[known]], [source[known]]
    whole = (
        calls["name"].cast(pl.String).str.contains(WHOLE_DEVICE).fill_null(False).to_numpy()
        & (source < 0)
        & (segment >= 0)
    )
    told = calls["wait_stream"].is_not_null().to_numpy() & (source < 0) & (segment >= 0) & ~whole
    begun = calls["ts_ns"].to_numpy()
    launched = work.drop_nulls("launch_ts_ns").sort("launch_ts_ns", "ts_ns", "row")
    for (_, stream), mine in launched.group_by("device", "stream", maintain_order=True):
        waiting = np.flatnonzero(whole | (told & calls["wait_stream"].eq(stream).fill_null(False).to_numpy()))
        place = np.searchsorted(mine["launch_ts_ns"].to_numpy(), begun[waiting]) - 1
        there = place >= 0
        segments.append(segment[waiting[there]])
        rows.append(mine["row"].to_numpy().astype(np.int64)[place[there]])
    return np.concatenate(segments), np.concatenate(rows)


def _begun(calls: pl.DataFrame, work: pl.DataFrame, source: Longs, start: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """When each wait began, and whether the call launched what it waited for.

    A copy that blocks is launched by the call itself: as long as its stream was free, the call worked (it staged the
    copy) until it began.
    """
    launched = work["launch_event"].cast(pl.Int64).fill_null(-1).to_numpy()[source] == calls["event"].to_numpy()
    ended = (pl.col("ts_ns") + pl.col("dur_ns")).cum_max().shift(1).over("device", "stream").fill_null(0)
    before = work.sort("ts_ns").select("row", ended=ended).sort("row")["ended"].to_numpy()[source]
    began = np.maximum(work["ts_ns"].to_numpy()[source], start)
    return np.where(launched & (before <= start), began, start), launched


def _with_streams(tables: Tables, calls: pl.DataFrame) -> pl.DataFrame:
    """Blocking calls with the stream that each waits for, where the device's own rows tell it by correlation."""
    told = tables["syncs"].select("correlation", wait_stream=pl.coalesce("wait_on_stream", "stream"))
    told = told.drop_nulls().filter(pl.col("wait_stream") >= 0).unique("correlation", keep="first")
    known = tables["runtime"].select("event", "correlation").join(told, on="correlation").drop("correlation")
    return calls.join(known, on="event", how="left", maintain_order="left")


def _copies(calls: pl.DataFrame, work: pl.DataFrame) -> Longs:
    """Row of the copy that each call waits for, where it is known; -1 else."""
    copies = work.select("event", pl.col("row").cast(pl.Int64), ended=pl.col("ts_ns") + pl.col("dur_ns"))
    wanted = calls.select("copy_event", returned=pl.col("ts_ns") + pl.col("dur_ns"))
    found = wanted.join(copies, left_on="copy_event", right_on="event", how="left", maintain_order="left")
    row = pl.when(pl.col("ended") <= pl.col("returned")).then("row").otherwise(-1)
    return found.select(row=row)["row"].fill_null(-1).to_numpy().astype(np.int64)


def _last_ended(calls: pl.DataFrame, work: pl.DataFrame) -> Longs:
    """Row of the work, launched before each call, that ended last before the call's return; -1: none."""
    linked = work.drop_nulls("launch_ts_ns").with_columns(end_ns=pl.col("ts_ns") + pl.col("dur_ns")).sort("end_ns")
    end, launched = linked["end_ns"].to_numpy(), linked["launch_ts_ns"].to_numpy()
    rows = np.append(linked["row"].to_numpy().astype(np.int64), -1)
    begun = calls["ts_ns"].to_numpy()
    place = np.searchsorted(end, begun + calls["dur_ns"].to_numpy(), side="right") - 1
    # Work that other threads launched meanwhile is stepped over; only what ended during the call is looked at.
    over = np.flatnonzero(place >= 0)
    while len(over):
        over = over[(launched[place[over]] >= begun[over]) & (end[place[over]] > begun[over])]
        place[over] -= 1
        over = over[place[over] >= 0]
    return rows[np.where(place >= 0, place, -1)]
