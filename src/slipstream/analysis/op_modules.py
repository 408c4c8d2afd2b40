"""The module each op belongs to; backward ops belong to the module of their forward op."""

import re

import numpy as np
import polars as pl

from slipstream.analysis.forward_ops import forward_of, is_backward
from slipstream.analysis.module_calls import module_calls
from slipstream.analysis.nesting import Longs, Nesting, nesting_of
from slipstream.model import NotEnoughData
from slipstream.store import Tables

_FORWARD = re.compile(r"(?:.*[/\\])?([^/\\]+\(\d+\)): forward$")
"""A frame of a stack in which a module runs; what is kept is the file's name and the line."""


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``op_modules``, in the order of ``ops``.

    Raises:
        NotEnoughData: the recording shows no modules, neither by Python rows nor by stacks.
    """
    ops = tables["ops"]
    calls = module_calls(tables)
    nesting = nesting_of(tables.trace, "ops")
    start = ops["ts_ns"].to_numpy()
    if calls.rows.height:
        direct = calls.nesting.innermost(ops["thread"].fill_null(-1).to_numpy(), start)
        begun = calls.rows["ts_ns"].to_numpy()
        paths = pl.Series(calls.paths, dtype=pl.String).gather(calls.path.tolist())
        events, basis = calls.rows["event"], "rows"
    else:
        direct, paths = _by_stacks(ops["call_stack"], nesting)
        begun = np.full(len(paths), np.iinfo(np.int64).min)
        events, basis = pl.Series(values=[None] * len(paths), dtype=pl.UInt32), "stacks"
    if not len(paths):
        raise NotEnoughData("no modules in this recording: record with with_stack=True (or with_modules=True)")
    owner, backward = _owners(tables, ops, direct, np.append(begun, 0)[direct], nesting)
    index = pl.Series(owner).replace(-1, None)
    return pl.DataFrame(
        {
            "event": ops["event"],
            "module": paths.gather(index),
            "call_event": events.gather(index),
            "backward": pl.Series(backward),
            "basis": pl.select(pl.when(pl.Series(owner >= 0)).then(pl.lit(basis))).to_series(),
        }
    )


def _owners(
    tables: Tables, ops: pl.DataFrame, direct: Longs, begun: Longs, nesting: Nesting
) -> tuple[Longs, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """What each op belongs to (as in ``direct``, -1: nothing), and whether as part of its backward pass.

    Args:
        tables: reads flows.
        ops: the table.
        direct: what is around each op.
        begun: when that began, ns.
        nesting: of the ops.
    """
    place = np.arange(ops.height)
    node = is_backward(ops)
    start = ops["ts_ns"].to_numpy()
    backward = inherited(np.where(node, place, -1), nesting)
    # A module that is called inside a backward node computes its forward again.
    own = (direct >= 0) & ((backward < 0) | (begun >= start[backward]))
    forward = forward_of(tables, ops, own & ~node)
    anchor = inherited(np.where(forward >= 0, place, -1), nesting)
    of_forward = np.where(anchor >= 0, direct[forward[anchor]], -1)
    owner = np.where(own, direct, np.where(of_forward >= 0, of_forward, direct))
    return owner, (backward >= 0) & ~own


def inherited(index: Longs, nesting: Nesting) -> Longs:
    """A number for each op: its own, else (-1) that of the nearest op around it that has one."""
    found = index.copy()
    order = np.argsort(nesting.depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(nesting.depth[order])) + 1)
    for level in levels[1:]:
        open_ones = level[found[level] < 0]
        found[open_ones] = found[nesting.parent[open_ones]]
    return found


def _by_stacks(stacks: pl.Series, nesting: Nesting) -> tuple[Longs, pl.Series]:
    """An index into paths for each op by its stack (frames innermost first), and the paths."""
    text = stacks.cast(pl.String)
    distinct = text.unique().drop_nulls()
    of_stack = {stack: _path(stack) for stack in distinct}
    paths = sorted({path for path in of_stack.values() if path})
    number = {path: place for place, path in enumerate(paths)}
    codes = {stack: number[path] if path else -1 for stack, path in of_stack.items()}
    found = np.array([codes.get(stack, -1) for stack in text.to_list()], np.int64)
    return inherited(found, nesting), pl.Series(paths, dtype=pl.String)


def _path(stack: str) -> str:
    frames = (frame.strip() for frame in reversed(stack.split(";")))
    modules = [frame.removeprefix("nn.Module: ") for frame in frames if frame.startswith("nn.Module: ")]
    if modules:
        return "/".join(modules)
    calls = (_FORWARD.match(frame.strip()) for frame in reversed(stack.split(";")))
    return "/".join(call[1] for call in calls if call)
