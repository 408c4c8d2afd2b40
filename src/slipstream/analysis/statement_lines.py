"""Lines of statements for ops of which only the function is known, from the step that was traced line by line."""

import functools

import numpy as np
import polars as pl

from slipstream.analysis.nesting import Longs, Nesting, nesting_of
from slipstream.store import Tables

_FUNCTION = ("file", "function", "line")
_OP = ("name", *_FUNCTION)
MOST_DIFFERENCES = 600
"""Ops in which two steps may differ to be compared; the time grows with the square."""


def with_statements(tables: Tables, ops: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Places with the line of the statement where the capture saw it, else as they were.

    The nth op of a name under a function within a step is the nth of that name under that function in the traced
    step, if both steps have as many. If not (a branch not taken, something done every tenth step), the two orders of
    all ops under the function are laid side by side. What that leaves open is the statement that all ops of the name
    came from, if that is a single one and the step has no odd number of them: one more than were seen may well have
    come from elsewhere. Else it is the statement of the op around it.

    Args:
        tables: reads statements (rows in the order of time) and op_tree.
        ops: columns event, name, ts_ns.
        places: of each op by itself: file, function, line (of the def), precision.
    """
    if not tables.trace.has("statements"):
        return places
    seen = tables["statements"].select(
        pl.col("op").cast(pl.String).alias("name"),
        pl.col("file", "function").cast(pl.String),
        pl.col("def_line").alias("line"),
        "nth",
        statement="line",
    )
    rows = places.with_columns(
        ops["name"].cast(pl.String), ops["ts_ns"], ops["event"], step=tables["op_tree"]["step"]
    ).with_row_index("place")
    rows = _by_order(rows.sort("ts_ns", "event"), seen)
    settled = rows.with_columns(_settled(rows, seen)).sort("place")["statement"]
    found = _with_parents(settled.fill_null(-1).to_numpy(), places, nesting_of(tables.trace, "ops"))
    statement = pl.Series(found).replace(-1, None)
    return places.with_columns(
        line=pl.coalesce(statement, "line"),
        precision=pl.when(statement.is_not_null()).then(pl.lit("statement")).otherwise("precision"),
    )


def _by_order(rows: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """Rows with ``statement`` where their step has as many ops of the name as were seen, and with ``lone``."""
    group = ("step", *_OP)
    rows = rows.with_columns(
        nth=pl.int_range(pl.len(), dtype=pl.Int64).over(group), times=pl.len().over(group)
    ).with_columns(nth=pl.when(pl.col("step").is_not_null()).then("nth"))
    by_order = seen.with_columns(times=pl.len().over(_OP))
    lone = seen.group_by(_OP).agg(
        pl.col("statement").n_unique().alias("kinds"), lone=pl.col("statement").first(), lone_times=pl.len()
    )
    return rows.join(by_order, on=[*_OP, "nth", "times"], how="left", maintain_order="left").join(
        lone.filter(pl.col("kinds") == 1).drop("kinds"), on=_OP, how="left", maintain_order="left"
    )


def _settled(rows: pl.DataFrame, seen: pl.DataFrame) -> pl.Series:
    """The statement of each row: by order, else by comparison of the two steps, else the lone one."""
    statement = rows["statement"].fill_null(-1).to_numpy().astype(np.int64)
    known = dict(seen.group_by(_FUNCTION, maintain_order=True))
    compare = functools.cache(matched)
    in_steps = rows.with_row_index("at").filter(pl.col("step").is_not_null())
    open_groups = in_steps.filter(pl.col("statement").is_null()).select("step", *_FUNCTION).unique()
    for key, part in in_steps.join(open_groups, on=["step", *_FUNCTION], how="semi").group_by("step", *_FUNCTION):
        before = known.get(key[1:])
        if before is None:
            continue
        match = np.array(compare(tuple(part["name"]), tuple(before["name"])), np.int64)
        at = part["at"].to_numpy()
        lines = np.where(match >= 0, np.append(before["statement"].to_numpy(), -1)[match], -1)
        statement[at] = np.where(statement[at] >= 0, statement[at], lines)
    whole = (pl.col("times") <= pl.col("lone_times")) | (pl.col("times") % pl.col("lone_times") == 0)
    lone = rows.select(pl.when(whole | pl.col("step").is_null()).then("lone"))["lone"]
    return pl.select(
        pl.coalesce(pl.Series(statement).replace(-1, None), lone).cast(pl.Int32).alias("statement")
    ).to_series()


def matched(names: tuple[str, ...], seen: tuple[str, ...]) -> list[int]:
    """For each name its place in ``seen`` when the two orders are laid side by side, -1 where it has none.

    A stretch that is the same in both counts when it is telling: three ops of two names at least.
    """
    match = side_by_side(names, seen)
    start = 0
    for place in range(1, len(match) + 1):
        if place == len(match) or match[place] < 0 or match[place] != match[place - 1] + 1:
            if place - start < 3 or len(set(names[start:place])) < 2:
                match[start:place] = [-1] * (place - start)
            start = place
    return match


def side_by_side(names: tuple[str, ...], seen: tuple[str, ...]) -> list[int]:
    """The alignment of two sequences with fewest differences; all -1 where there are too many.

    Source: E. W. Myers, An O(ND) difference algorithm and its variations, Algorithmica 1 (1986).
    """
    reached = {1: 0}
    rounds: list[dict[int, int]] = []
    for differences in range(MOST_DIFFERENCES + 1):
        rounds.append(dict(reached))
        for diagonal in range(-differences, differences + 1, 2):
            before = _from(reached, diagonal, differences)
            x = reached[before] + (before < diagonal)
            y = x - diagonal
            while x < len(seen) and y < len(names) and seen[x] == names[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            if x >= len(seen) and y >= len(names):
                return _backwards(rounds, len(names), len(seen))
    return [-1] * len(names)


def _from(reached: dict[int, int], diagonal: int, differences: int) -> int:
    """The neighbouring diagonal from which the furthest point of a diagonal is reached."""
    down = diagonal == -differences or (diagonal != differences and reached[diagonal - 1] < reached[diagonal + 1])
    return diagonal + 1 if down else diagonal - 1


def _backwards(rounds: list[dict[int, int]], y: int, x: int) -> list[int]:
    """Follow the furthest points back to the start; the equal pairs on the way."""
    match = [-1] * y
    for differences in range(len(rounds) - 1, -1, -1):
        before = _from(rounds[differences], x - y, differences)
        x_before = rounds[differences][before]
        y_before = x_before - before
        while x > x_before and y > y_before and x > 0 and y > 0:
            x, y = x - 1, y - 1
            match[y] = x
        x, y = x_before, y_before
    return match


def _with_parents(statement: Longs, places: pl.DataFrame, nesting: Nesting) -> Longs:
    """Where it is open (-1): that of the op around it, if both are under the same call of the user's code."""
    function = places.select(pl.struct(_FUNCTION).rank("dense")).to_series().to_numpy()
    found = statement.copy()
    for level in nesting.levels()[1:]:
        around = nesting.parent[level]
        takes = (found[level] < 0) & (function[level] == function[around])
        found[level[takes]] = found[around[takes]]
    return found
