"""The tables that are drawn from the dependency graph."""

import polars as pl

from slipstream.store.column import Table, column
from slipstream.store.recorded import TEXT

GRAPH_EDGES = Table(
    name="graph_edges",
    kind="derived",
    meaning="Edges of the dependency graph by kind, and how many the recording contradicted.",
    columns=(
        column(
            "kind",
            TEXT,
            "program (order on a thread), launch, stream (order on a stream), stream_wait, inferred_wait (of a stream, "
            "by its times alone), sync, hand_over (between threads), forward (to its backward op), loader, assumed "
            "(hung on the main thread for want of anything better)",
        ),
        column("edges", pl.Int64, "edges in the graph"),
        column("decisive", pl.Int64, "those of them that were satisfied last, so that their target could begin"),
        column("dropped", pl.Int64, "false edges: the source ended after the target began; not in the graph"),
    ),
)

CRITICAL_PATH = Table(
    name="critical_path",
    kind="derived",
    meaning="The chain of tasks that the window's length consists of, in order of time; it covers the window once. "
    "Cut at step marks, so that the rows of a step add up to its duration.",
    columns=(
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration of the part on the path", "ns"),
        column(
            "kind",
            TEXT,
            "kernel, collective, copy, set; op (leaf), runtime, sync (a blocking call after what it waited for), gap "
            "(Python or framework code between those); latency (up to 50 µs from a launch, or on a stream, to the next "
            "task); unexplained (nothing in the recording tells what was waited for)",
        ),
        column("resource", TEXT, "thread 3, or device 0 stream 7", missing="unexplained"),
        column("thread", pl.Int32, "thread", missing="not on a thread"),
        column("device", pl.Int32, "device ordinal", missing="not on a device, or not told"),
        column("stream", pl.Int64, "stream", missing="not on a device, or not told"),
        column("event", pl.UInt32, "event of the row; of a gap the innermost call around it", missing="none"),
        column("name", TEXT, "name of that event", missing="none"),
        column("step", pl.Int64, "number of the step it lies in", missing="outside every step"),
    ),
)

GRAPH_TABLES = (GRAPH_EDGES, CRITICAL_PATH)
