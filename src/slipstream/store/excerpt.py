"""Part of a recording: the rows that lie in a span of time."""

import polars as pl

from slipstream.store.trace import Trace

_POSITIONS = ("ts_ns", "start_ns")


def excerpt(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """The rows of a recording that lie in a span, at least in part, and the calls that launched its device work.

    Args:
        trace: the whole.
        start_ns: where the span begins.
        end_ns: where it ends; rows that start there are left out.
    Returns:
        A trace on the same clock. Threads, and tables without a position, stay whole.
    Raises:
        ValueError: the span is empty.
    """
    if end_ns <= start_ns:
        raise ValueError(f"a span from {start_ns} to {end_ns} ns is empty")
    tables = {name: _within(trace.table(name), start_ns, end_ns) for name in trace if name != "collectives"}
    launched = pl.concat([tables[name]["correlation"] for name in ("kernels", "copies", "sets")]).drop_nulls().unique()
    runtime = trace.runtime
    kept = runtime.filter(
        pl.col("correlation").is_in(launched.implode()) | pl.col("event").is_in(tables["runtime"]["event"].implode())
    )
    events = pl.concat([tables["events"]["event"], kept["event"]]).unique()
    tables["runtime"] = kept
    tables["events"] = trace.events.filter(pl.col("event").is_in(events.implode()))
    tables["collectives"] = trace.collectives.join(tables["kernels"].select("event"), on="event", how="semi")
    return Trace(trace.source, trace.integrity, tables, tables["events"].height, trace.packages)


def _within(frame: pl.DataFrame, start_ns: int, end_ns: int) -> pl.DataFrame:
    """Rows that overlap the span; a row without a length counts where it stands."""
    position = next((name for name in _POSITIONS if name in frame.columns), None)
    if position is None:
        return frame
    begin = pl.col(position)
    if "dur_ns" not in frame.columns:
        return frame.filter(begin.is_between(start_ns, end_ns, closed="left"))
    end = begin + pl.col("dur_ns").fill_null(0)
    return frame.filter((begin < end_ns) & ((end > start_ns) | (begin >= start_ns)))
