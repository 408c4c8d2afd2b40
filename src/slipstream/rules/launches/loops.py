"""Loops of the user's code whose calls could be one: over the entries of a tensor, over the samples of a batch."""

from typing import cast

import msgspec
import numpy as np
import polars as pl

from slipstream.analysis.nesting import nest
from slipstream.analysis.painting import Painted, covered, layer, paint
from slipstream.rules.places import PLACE
from slipstream.rules.scope import Scope
from slipstream.rules.window_ops import FIXED_NS, PACE, pace_idle, spans_of, window_ops, within
from slipstream.store import Tables

INDEXED = ("aten::select", "aten::index", "aten::slice")
FETCHES = (*INDEXED, "aten::item")
"""What a body does to get at entries, of this tensor or of another one."""
BODY_OPS = 8
"""Ops between two entries of one loop, fetches aside, from which on its body does more than to fetch entries."""
ENTRIES = 10
"""Entries in a row from which on it is a loop."""
CALLS = 4
"""Calls of one model with one sample each, within one step, from which on samples come one by one."""
_RUN = {
    "thread": pl.Int32(),
    "ts_ns": pl.Int64(),
    "dur_ns": pl.Int64(),
    "count": pl.Int64(),
    "name": pl.String(),
    **{name: pl.Int32() if name == "line" else pl.String() for name in PLACE},
}


def indexing_loops(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Runs of ``ENTRIES`` and more entries of a tensor that one place fetches one after the other.

    Where the index is recorded it must change from entry to entry. Loops inside the data loader are the loader's.

    Returns:
        thread, ts_ns, dur_ns (to the end of the last body), count, name of the op, and the place.
    """
    roots = _roots(tables, scope)
    roots = roots.with_columns(done=(~pl.col("name").is_in(FETCHES)).cum_sum().over("thread"))
    keys = roots.filter(pl.col("name").is_in(INDEXED))
    same = ("thread", "name", *PLACE)
    # A body may fetch from several tensors and in several statements in turn: each of these fetches makes a run.
    one = ("thread", "name", "input_dims", *PLACE)
    keys = keys.sort(*one, "ts_ns")
    new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in one)
    far = pl.col("done") - pl.col("done").shift(1) >= BODY_OPS
    keys = keys.with_columns(run=(new | far.fill_null(True)).cum_sum())
    runs = keys.group_by("run", maintain_order=True).agg(
        *(pl.col(name).first() for name in same),
        pl.col("ts_ns").first(),
        last_ns=pl.col("ts_ns").last(),
        last_end_ns=pl.col("end_ns").last(),
        count=pl.len().cast(pl.Int64),
        indices=pl.col("concrete_inputs").n_unique(),
        known=pl.col("concrete_inputs").is_not_null().all() & (pl.col("name").first() != "aten::index"),
    )
    runs = runs.filter((pl.col("count") >= ENTRIES) & (~pl.col("known") | (2 * pl.col("indices") > pl.col("count"))))
    body = (pl.col("last_ns") - pl.col("ts_ns")) // (pl.col("count") - 1)
    end = pl.max_horizontal(pl.col("last_ns") + body, "last_end_ns")
    runs = runs.with_columns(dur_ns=end - pl.col("ts_ns"), end_ns=end).sort("thread", "ts_ns", "end_ns")
    # The other places of the same body: the loop is told once, by the first of them.
    reached = pl.col("end_ns").cum_max().shift(1).over("thread")
    runs = runs.filter((pl.col("ts_ns") >= reached).fill_null(True))
    return runs.select(pl.col(name).cast(to) for name, to in _RUN.items())


def sample_loops(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Outermost modules that one step calls ``CALLS`` times and more with one sample each, recorded for a backward.

    Returns:
        One row per call: thread, ts_ns, dur_ns, count (calls of the step), name of the module; no place.
    """
    calls = _outermost_modules(tables, scope)
    ops = window_ops(tables, scope).filter(pl.col("input_dims").is_not_null())
    if not calls.height or not ops.height:
        return pl.DataFrame(schema=_RUN)
    inner = ops.select("thread", "ts_ns", "input_dims", "sequence", op="name", op_end_ns="end_ns").sort("ts_ns")
    first = calls.sort("ts_ns").join_asof(
        inner.with_columns(op_ts_ns="ts_ns"), on="ts_ns", by="thread", strategy="forward", check_sortedness=False
    )
    first = first.filter((pl.col("op_ts_ns") < pl.col("ts_ns") + pl.col("dur_ns")) & pl.col("sequence").is_not_null())
    one = [_is_one_sample(op, dims) for op, dims in first.select("op", "input_dims").iter_rows()]
    first = first.filter(pl.Series(one, dtype=pl.Boolean))
    steps = tables["steps"].select("start_ns", step="number").sort("start_ns")
    first = first.join_asof(steps, left_on="ts_ns", right_on="start_ns", check_sortedness=False)
    first = first.with_columns(count=pl.len().over("thread", "name", "step").cast(pl.Int64))
    first = first.filter(pl.col("count") >= CALLS)
    return first.select(
        pl.col(name).cast(to) if name in first.columns else pl.lit(None, to).alias(name) for name, to in _RUN.items()
    )


def with_fixed_cost(tables: Tables, scope: Scope, loops: pl.DataFrame) -> pl.DataFrame:
    """Loops with ``cost_ns``: what one pass over everything would save of each.

    Without a device that is Python between ops and the fixed cost of each call; on a device it is idle time during
    the loop for which the host's pace is the cause. One pass of the loop remains.

    Args:
        loops: rows with thread, ts_ns, dur_ns and count (passes); disjoint on their thread.
    """
    roots = _roots(tables, scope)
    parts = []
    for (thread,), part in loops.group_by("thread", maintain_order=True):
        start = part["ts_ns"].to_numpy()
        end = start + part["dur_ns"].to_numpy()
        if scope.on_device:
            spent = covered(pace_idle(tables, thread, PACE), start, end)
        else:
            mine = roots.filter(pl.col("thread") == thread)
            begin = mine["ts_ns"].to_numpy() + FIXED_NS
            work = paint(begin, np.maximum(begin, mine["end_ns"].to_numpy()), 0)
            spent = (end - start) - covered(work, start, end)
        parts.append(part.with_columns(spent_ns=pl.Series(spent, dtype=pl.Int64)))
    if not parts:
        return loops.with_columns(spent_ns=pl.lit(0, pl.Int64), cost_ns=pl.lit(0, pl.Int64))
    saved = pl.col("spent_ns") * (1 - 1 / pl.col("count"))
    return pl.concat(parts).with_columns(cost_ns=saved.round().cast(pl.Int64))


def loop_spans(tables: Tables, scope: Scope) -> Painted:
    """Time of the window inside any of these loops, on whichever thread."""
    return layer([spans_of(indexing_loops(tables, scope)), spans_of(sample_loops(tables, scope))])


def _roots(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Forward ops that no op calls, outside the data loader."""
    ops = window_ops(tables, scope).filter(pl.col("parent").is_null() & (pl.col("fwd_thread").fill_null(0) == 0))
    if not tables.has("loader_spans"):
        return ops
    return ops.filter(~within(ops, spans_of(tables["loader_spans"].sort("start_ns"), "start_ns")))


def _outermost_modules(tables: Tables, scope: Scope) -> pl.DataFrame:
    rows = tables["python"].filter(
        pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
        & pl.col("name").cast(pl.String).str.starts_with("nn.Module: ")
    )
    if not scope.on_device:
        rows = rows.filter(pl.col("thread").eq_missing(pl.lit(scope.main_thread)))
    rows = rows.select("thread", "ts_ns", "dur_ns", pl.col("name").cast(pl.String))
    nesting = nest(rows["thread"], rows["ts_ns"], rows["ts_ns"] + rows["dur_ns"])
    return rows.filter(pl.Series(nesting.depth == 0, dtype=pl.Boolean))


def _is_one_sample(op: str, dims: str) -> bool:
    """Whether the first tensor that a model touches holds one sample."""
    shapes = [
        shape
        for shape in cast("list[list[int]]", msgspec.json.decode(dims))
        if isinstance(shape, list) and shape and all(isinstance(size, int) for size in shape)
    ]
    if op == "aten::embedding":
        shapes = shapes[1:]
    return bool(shapes) and (shapes[0][0] == 1 or (op == "aten::linear" and len(shapes[0]) == 1))
