"""What the time of every step of a recording went to, nanosecond by nanosecond."""

from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.busy import layers_of_window
from slipstream.analysis.nesting import nesting_of
from slipstream.analysis.painting import Painted, inside, merge, outside, paint
from slipstream.model import CAUSES, NotEnoughData
from slipstream.model.difference import Basis
from slipstream.store import Tables

Longs = npt.NDArray[np.int64]
PIECES = {"part": pl.String, "step": pl.Int64, "event": pl.Int64, "ns": pl.Int64}


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that are compared."""

    start_ns: Longs
    dur_ns: Longs
    basis: Basis

    def __len__(self) -> int:
        return len(self.dur_ns)


def steps_of(tables: Tables) -> Steps:
    """The steps of a recording; without any, the whole of it is one.

    Raises:
        NotEnoughData: nothing in the recording takes time.
    """
    window = tables.row("window")
    steps = tables["steps"].sort("start_ns").filter(pl.col("dur_ns") > 0)
    if steps.height:
        basis: Basis = "inferred" if steps["inferred"].any() else "marks"
        return Steps(start_ns=steps["start_ns"].to_numpy(), dur_ns=steps["dur_ns"].to_numpy(), basis=basis)
    start, end = cast(int, window["start_ns"]), cast(int, window["end_ns"])
    if end <= start:
        raise NotEnoughData(f"nothing in {tables.source.path} takes time: there is nothing to compare")
    return Steps(start_ns=np.array([start]), dur_ns=np.array([end - start]), basis="recording")


def pieces_of(tables: Tables, steps: Steps) -> pl.DataFrame:
    """Time per step, part and event; of a step they add up to its duration.

    Returns:
        Columns as in ``PIECES``: step counts from 0; event is that of the kernel, copy or (on the main thread) op
        that has the time, -1 for idle time and where no op is known.
    Raises:
        NotEnoughData: it is not known when the device (or main thread) was busy.
    """
    idle = tables["idle_spans"]
    # Steps that overlap are not foreseen by ``inside``; a later one takes over from the one before.
    end = np.minimum(steps.start_ns + steps.dur_ns, np.append(steps.start_ns[1:], np.iinfo(np.int64).max))
    windows = Painted(start=steps.start_ns, end=end, label=np.zeros_like(end), event=np.zeros_like(end))
    layers = layers_of_window(tables)
    if not tables.row("window")["on_device"]:
        layers["compute"] = _innermost(tables, layers["compute"])
    frames = [_summed(part, spans, windows) for part, spans in layers.items()]
    begin = idle["start_ns"].to_numpy()
    codes = idle["cause"].cast(pl.String).replace_strict({cause: n for n, cause in enumerate(CAUSES)})
    spans = paint(begin, begin + idle["dur_ns"].to_numpy(), codes.to_numpy().astype(np.int64))
    frames += [_summed(f"idle_{cause}", spans.take(spans.label == n), windows) for n, cause in enumerate(CAUSES)]
    return pl.concat(frames)


def _summed(part: str, spans: Painted, windows: Painted) -> pl.DataFrame:
    pieces, step = inside(spans, windows)
    rows = {"step": step.astype(np.int64), "event": pieces.event, "ns": pieces.end - pieces.start}
    frame = pl.DataFrame(rows, schema={name: PIECES[name] for name in rows})
    summed = frame.group_by("step", "event").agg(pl.col("ns").sum())
    return summed.select(pl.lit(part).alias("part"), "step", "event", "ns")


def _innermost(tables: Tables, busy: Painted) -> Painted:
    """Time of the main thread inside ops, each piece with the innermost op."""
    main = cast("int | None", tables.row("window")["main_thread"])
    ops = tables["ops"]
    nesting = nesting_of(tables.trace, "ops")
    mine = np.flatnonzero(ops["thread"].to_numpy() == main)
    borders = np.unique(np.concatenate([nesting.start[mine], nesting.end[mine]]))
    if len(borders) < 2:
        return busy
    owner = nesting.innermost(np.full(len(borders) - 1, main), borders[:-1])
    events = np.append(ops["event"].to_numpy().astype(np.int64), -1)[owner]
    owned = paint(borders[:-1], borders[1:], 0, events).take(owner >= 0)
    pieces, _ = inside(owned, busy)
    # Starts are moved by the clock's resolution where spans of one thread overlap: what that leaves has no op.
    rest = outside(busy, pieces)
    return merge([pieces, msgspec.structs.replace(rest, event=np.full(len(rest), -1, np.int64))])
