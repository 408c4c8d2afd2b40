"""Where in the user's code each op comes from.

The innermost user frame around an op is its place: from Python rows, which tell the line of the ``def``; in older
recordings from the call stack that ops carry, which tells the line that was running. An op without either lies where
the op around it lies. Backward ops take the place of their forward op, unless the user's own code runs inside them
(a custom backward, a recomputed forward).
"""

import numpy as np
import polars as pl

from slipstream.analysis.forward_ops import forward_of, is_backward
from slipstream.analysis.frames import classify
from slipstream.analysis.nesting import Longs, Nesting, nest, nesting_of
from slipstream.analysis.statement_lines import with_statements
from slipstream.store import Tables

_SCHEMA = pl.Schema({"file": pl.String(), "line": pl.Int32(), "function": pl.String(), "precision": pl.String()})


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``op_places``, in the order of ``ops``."""
    ops = tables["ops"].select("event", "name", "thread", "ts_ns", "sequence", "fwd_thread")
    nesting = nesting_of(tables.trace, "ops")
    frames, frame_start = _frames_around(tables, ops)
    places = with_statements(tables, ops, frames)
    direct = places["file"].is_not_null().to_numpy()
    backward = _inherited(np.where(is_backward(ops), np.arange(ops.height), -1), nesting)
    source = _inherited(np.where(direct, np.arange(ops.height), -1), nesting)
    start = ops["ts_ns"].to_numpy()
    recomputed = direct & (frame_start >= start[backward])
    forward = forward_of(tables, ops, (source >= 0) & ((backward < 0) | recomputed) & ~is_backward(ops))
    # The innermost backward op around each op that has a forward op with a place.
    anchor = _inherited(np.where(forward >= 0, np.arange(ops.height), -1), nesting)
    own_code = direct & (frame_start >= start[anchor])
    source = np.where((anchor >= 0) & ~own_code, source[forward[anchor]], source)
    found = places.select(pl.all().gather(pl.Series(source).replace(-1, None)))
    return ops.select("event").hstack(found)


def _frames_around(tables: Tables, ops: pl.DataFrame) -> tuple[pl.DataFrame, Longs]:
    """The user frame of each op by itself, null where it has none; and when that frame was called."""
    by_rows, frame_start = _by_python_rows(tables, ops)
    stacks = tables["ops"]["call_stack"]
    if stacks.null_count() == len(stacks):
        return by_rows, frame_start
    by_stack = _by_call_stack(stacks, tables.trace.packages)
    missing = by_rows["file"].is_null()
    merged = [
        pl.select(pl.when(missing).then(by_stack[name]).otherwise(by_rows[name]).alias(name)).to_series()
        for name in _SCHEMA
    ]
    return pl.DataFrame(merged), frame_start


def _by_python_rows(tables: Tables, ops: pl.DataFrame) -> tuple[pl.DataFrame, Longs]:
    frames = (
        tables["frames"]
        .filter(pl.col("kind") == "user")
        .select("name", "file", "line", "function", precision=pl.lit("function"))
    )
    calls = tables["python"].join(frames, on="name", maintain_order="left")
    start = calls["ts_ns"].to_numpy()
    tie = calls["python_id"].fill_null(0).to_numpy()
    users = nest(calls["thread"].to_numpy(), start, start + calls["dur_ns"].to_numpy(), tie)
    index = users.innermost(ops["thread"].to_numpy(), ops["ts_ns"].to_numpy())
    found = calls.select(*_SCHEMA).select(pl.all().gather(pl.Series(index).replace(-1, None)))
    called = np.append(start, np.iinfo(np.int64).min)[index]
    return found.cast(_SCHEMA), called


def _by_call_stack(stacks: pl.Series, packages: frozenset[str] | None) -> pl.DataFrame:
    """The innermost user frame of each stack (frames innermost first)."""
    text = stacks.cast(pl.String)
    distinct = text.unique().drop_nulls()
    frames = [_innermost(stack, packages) for stack in distinct]
    known = pl.DataFrame(frames, schema=_SCHEMA, orient="row").with_columns(stack=distinct)
    return text.to_frame("stack").join(known, on="stack", how="left", maintain_order="left").select(*_SCHEMA)


def _innermost(stack: str, packages: frozenset[str] | None) -> tuple[str | int | None, ...]:
    for text in stack.split(";"):
        frame = classify(text.strip(), packages)
        if frame.kind == "user":
            return frame.file, frame.line, frame.function, "statement"
    return None, None, None, None


def _inherited(index: Longs, nesting: Nesting) -> Longs:
    """An index for each op: its own, else (-1) that of the nearest op around it with one."""
    found = index.copy()
    for level in nesting.levels()[1:]:
        open_ones = level[found[level] < 0]
        found[open_ones] = found[nesting.parent[open_ones]]
    return found
