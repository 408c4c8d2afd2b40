"""A metric: a derived table with what ``docs/metrics.md`` says beyond its columns, and columns that several share."""

import polars as pl

from slipstream.store.column import Column, Table, column
from slipstream.store.recorded import TEXT


class Metric(Table, frozen=True, kw_only=True):
    """One derived table that answers a question about performance."""

    definition: str
    """How the figures are made from the recording, exactly enough to check them by hand."""
    source: str
    """Where the definition comes from: a paper, a document, or plain reasoning on the recording."""


def place() -> tuple[Column, ...]:
    """Where in the user's code."""
    return (
        column("file", TEXT, "file of the innermost frame in the user's code", missing="no user frame known"),
        column("line", pl.Int32, "line in that file", missing="no user frame known"),
        column("function", TEXT, "function of that frame", missing="no user frame known"),
        column("precision", TEXT, "statement, or function when line is that of the def", missing="no user frame known"),
    )


def stream() -> tuple[Column, Column]:
    """Which queue of which device; stream 0 is one like any other."""
    return (
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("stream", pl.Int64, "stream", missing="not told, or the whole device"),
    )


def spread(what: str) -> tuple[Column, ...]:
    """Mean, median, greatest and standard deviation of a duration, from the events themselves."""
    return (
        column("mean_ns", pl.Float64, f"mean of {what}", "ns"),
        column("median_ns", pl.Float64, f"median of {what}", "ns"),
        column("max_ns", pl.Int64, f"greatest of {what}", "ns"),
        column("std_ns", pl.Float64, f"standard deviation of {what}; of these events, not of a sample", "ns"),
    )
