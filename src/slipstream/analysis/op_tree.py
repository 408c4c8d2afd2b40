"""Nesting, own time and device time of every op."""

import numpy as np
import polars as pl

from slipstream.analysis.nesting import Longs, Nesting, nesting_of
from slipstream.analysis.step_marks import step_at
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``op_tree``, in the order of ``ops``."""
    ops = tables["ops"]
    nesting = nesting_of(tables.trace, "ops")
    start = ops["ts_ns"].to_numpy()
    event = ops["event"]
    calls = nesting_of(tables.trace, "python").innermost(ops["thread"].to_numpy(), start)
    device_self = _device_self(tables, event)
    return pl.DataFrame(
        {
            "event": event,
            "thread": ops["thread"],
            "depth": nesting.depth,
            "parent": _at(event, nesting.parent),
            "root": _at(event, nesting.root),
            "self_ns": nesting.self_ns,
            "device_self_ns": device_self,
            "device_total_ns": with_inner(nesting, device_self),
            "python_event": _at(tables["python"]["event"], calls),
            "step": step_at(tables, start),
        }
    )


def with_inner(nesting: Nesting, value: Longs) -> Longs:
    """A quantity of each span with that of all spans inside it added.

    Args:
        nesting: of the spans.
        value: one each.
    """
    total = value.copy()
    for level in reversed(nesting.levels()[1:]):
        np.add.at(total, nesting.parent[level], total[level])
    return total


def _device_self(tables: Tables, event: pl.Series) -> Longs:
    launched = tables["device_work"].drop_nulls("op_event").group_by("op_event").agg(pl.col("dur_ns").sum())
    joined = event.to_frame("op_event").join(launched, on="op_event", how="left", maintain_order="left")
    return joined["dur_ns"].fill_null(0).to_numpy().astype(np.int64)


def _at(event: pl.Series, index: Longs) -> pl.Series:
    """Events at each index, null for -1."""
    return event.gather(pl.Series(index).replace(-1, None))
