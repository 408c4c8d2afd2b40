"""Which forward op each backward op belongs to."""

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.nesting import Longs
from slipstream.store import Tables


def is_backward(ops: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each op is a node of the backward pass: those name the thread of their forward op."""
    return (ops["fwd_thread"].fill_null(0) != 0).to_numpy()


def forward_of(tables: Tables, ops: pl.DataFrame, located: npt.NDArray[np.bool_]) -> Longs:
    """Index of the forward op of each backward op, -1 where it has none.

    Arrows drawn by the profiler first. Else the sequence number: of the forward ops that carry it, the last to start
    made the autograd node. Numbers count per thread, so they are looked up on the thread where that forward thread's
    other numbers were found.

    Args:
        tables: reads flows.
        ops: columns thread, ts_ns, sequence, fwd_thread.
        located: whether each op may serve as a forward op.
    Source: torch.profiler's arrows from forward to backward (kind fwdbwd) are drawn by the same rule.
    """
    rows = ops.with_row_index("place").with_columns(pl.Series("located", located))
    found = np.full(ops.height, -1, np.int64)
    for linked in (_by_sequence(rows), _by_arrow(tables, rows)):
        found[linked["place"].to_numpy()] = linked["forward"].to_numpy()
    return found


def _by_sequence(rows: pl.DataFrame) -> pl.DataFrame:
    numbered = rows.drop_nulls("sequence").sort("ts_ns", "place")
    is_backward = pl.col("fwd_thread").fill_null(0) != 0
    forward = numbered.filter("located").select("sequence", "ts_ns", forward="place", on_thread="thread")
    backward = numbered.filter(is_backward).select("place", "sequence", "ts_ns", "fwd_thread")
    seen = (
        backward.select("sequence", "fwd_thread")
        .unique()
        .join(forward.select("sequence", "on_thread").unique(), on="sequence")
    )
    threads = seen.group_by("fwd_thread", "on_thread").len().sort("len", "on_thread", descending=[True, False])
    chosen = threads.unique("fwd_thread", keep="first", maintain_order=True).drop("len")
    pairs = backward.join(chosen, on="fwd_thread", maintain_order="left").join_asof(
        forward, on="ts_ns", by=["sequence", "on_thread"], check_sortedness=False
    )
    return pairs.drop_nulls("forward").select("place", "forward")


def _by_arrow(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    arrows = tables["flows"].filter(pl.col("kind").cast(pl.String) == "fwdbwd").drop_nulls("flow_id")
    tails = arrows.filter("start").select("flow_id", "thread", "ts_ns")
    heads = arrows.filter(~pl.col("start")).select("flow_id", "thread", "ts_ns")
    at = ["thread", "ts_ns"]
    forward = tails.join(rows.filter("located").select("thread", "ts_ns", forward="place"), on=at)
    backward = heads.join(rows.select("thread", "ts_ns", "place", "fwd_thread"), on=at)
    pairs = backward.filter(pl.col("fwd_thread").fill_null(1) != 0).join(forward, on="flow_id").sort("forward")
    return pairs.unique("place", keep="last", maintain_order=True).select("place", "forward")
