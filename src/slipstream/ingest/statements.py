"""Joins the ops of the step that was traced line by line to the statements of the user's code they came from."""

import polars as pl

from slipstream.store import DECLARED, LINES, Trace

STATEMENTS = DECLARED["statements"]
RETURNED = -1
FRAME = ("file", "function", "def_line")
_STATE = (*FRAME, "line")


def statements(places: Trace, lines: pl.DataFrame) -> pl.DataFrame:
    """The table ``statements``.

    Args:
        places: recording of the step, with its absolute origin; ops on threads without lines get no row.
        lines: ``store.LINES`` of the same step, in the order of time on every thread.
    Returns:
        One row per op that ran while a line of the user's code was active on its thread.
    Raises:
        ValueError: the recording has no absolute time to join by.
    """
    if places.source.origin_ns is None:
        raise ValueError("the recording of the extra step tells no absolute time")
    origin = int(places.source.origin_ns)
    ops = (
        places.table("ops")
        .join(places.table("threads"), on="thread")
        .select(
            "event",
            pl.col("name").alias("op"),
            pl.col("tid").cast(pl.Int64, strict=False).alias("thread_id"),
            (pl.col("ts_ns") + origin).alias("ts_ns"),
        )
    )
    states = active_lines(LINES.frame(lines))
    ops = ops.filter(pl.col("thread_id").is_not_null()).sort("ts_ns", "event")
    joined = ops.join_asof(
        states.sort("ts_ns", maintain_order=True),
        on="ts_ns",
        by="thread_id",
        strategy="backward",
        check_sortedness=False,
    ).filter(pl.col("line").is_not_null())
    counted = joined.with_columns((pl.int_range(pl.len()).over("op", *FRAME)).cast(pl.Int64).alias("nth"))
    return STATEMENTS.frame(counted.select("op", "nth", *_STATE))


def active_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """Which line of the user's code is the innermost active one from each line event on.

    A line of another function than the innermost is a call: what was active becomes its caller and is active
    again when the function returns.

    Args:
        lines: the line events; ``line`` -1 says that the function returned.
    Returns:
        ``thread_id``, ``ts_ns`` and the active ``file``, ``function``, ``def_line``, ``line`` (null: none).
    """
    plain = lines.with_columns(pl.col("file").cast(pl.String), pl.col("function").cast(pl.String))
    stacks: dict[int, list[tuple[tuple[str, str, int], int]]] = {}
    states: list[tuple[str, str, int, int] | tuple[None, None, None, None]] = []
    for thread, file, function, def_line, line in plain.select("thread_id", *_STATE).iter_rows():
        stack = stacks.setdefault(thread, [])
        frame = (file, function, def_line)
        if line == RETURNED:
            _leave(stack, frame)
        elif stack and stack[-1][0] == frame:
            stack[-1] = (frame, line)
        else:
            stack.append((frame, line))
        states.append((*stack[-1][0], stack[-1][1]) if stack else (None, None, None, None))
    schema = {name: LINES.schema[name] for name in _STATE}
    found = pl.DataFrame(states, schema=schema, orient="row")
    return plain.select("thread_id", "ts_ns").hstack(found)


def _leave(stack: list[tuple[tuple[str, str, int], int]], frame: tuple[str, str, int]) -> None:
    """Take a function off the stack together with all it called, should their returns have been missed."""
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth][0] == frame:
            del stack[depth:]
            return
