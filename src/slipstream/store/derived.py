"""The tables that ``analysis`` fills from the recorded and measured ones; each is built by the module
``analysis/<name>.py``.
"""

import polars as pl

from slipstream.store.column import Column, Table, column
from slipstream.store.graph_tables import GRAPH_TABLES
from slipstream.store.metrics import METRICS
from slipstream.store.recorded import TEXT


def _place() -> tuple[Column, ...]:
    return (
        column("file", TEXT, "file of the innermost frame in the user's code", missing="no user frame known"),
        column("line", pl.Int32, "line in that file", missing="no user frame known"),
        column("function", TEXT, "function of that frame", missing="no user frame known"),
        column("precision", TEXT, "statement, or function when line is that of the def", missing="no user frame known"),
    )


def _step(meaning: str = "number of the step it started in") -> Column:
    return column("step", pl.Int64, meaning, missing="outside every step")


WINDOW = Table(
    name="window",
    kind="derived",
    meaning="One row: the part of the recording that is diagnosed.",
    columns=(
        column("start_ns", pl.Int64, "first step mark, or start of the recording", "ns"),
        column("end_ns", pl.Int64, "last step mark, extended to the last device event launched inside", "ns"),
        column("basis", TEXT, "marks, inferred (steps by repetition) or recording (no steps)"),
        column("steps", pl.Int64, "steps inside", missing="no steps known"),
        column("on_device", pl.Boolean, "whether a device did the work; false: the main thread is what counts"),
        column("main_thread", pl.Int32, "thread that drives the training", missing="no host rows"),
        column(
            "busy_ns", pl.Int64, "device (or main thread) busy", "ns", "device work (or all ops) missing from the file"
        ),
        column("idle_ns", pl.Int64, "rest of the window", "ns", "device work (or all ops) missing from the file"),
    ),
)

TOTALS = Table(
    name="totals",
    kind="derived",
    meaning="One row: sums and unions of intervals over the whole file (see the JSON contract).",
    columns=(
        column("events", pl.Int64, "elements of traceEvents"),
        column("gpu_events", pl.Int64, "kernels + copies + sets"),
        column("kernels", pl.Int64, "kernels, collectives included"),
        column("gpu_sum_ns", pl.Int64, "sum of device durations", "ns", "no device"),
        column("gpu_busy_ns", pl.Int64, "union of all device work", "ns", "no device"),
        column("kernel_sum_ns", pl.Int64, "sum of kernel durations", "ns", "no device"),
        column("comm_ns", pl.Int64, "union of collective kernels", "ns", "no device"),
        column("exposed_comm_ns", pl.Int64, "union of collectives minus union of compute kernels", "ns", "no device"),
        column("memcpy_ns", pl.Int64, "union of copies", "ns", "no device"),
        column("exposed_memcpy_ns", pl.Int64, "union of copies minus union of all kernels", "ns", "no device"),
    ),
)

DEVICE_WORK = Table(
    name="device_work",
    kind="derived",
    meaning="Kernels, copies and sets in one table, each with the host call that launched it and its steps.",
    columns=(
        column("event", pl.UInt32, "event of the device row"),
        column("kind", TEXT, "kernel, collective, copy or set"),
        column("name", TEXT, "name"),
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("stream", pl.Int64, "stream", missing="not told"),
        column("ts_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        column("launch_event", pl.UInt32, "runtime row that launched it", missing="unlinked"),
        column("launch_ts_ns", pl.Int64, "start of that call", "ns", "unlinked"),
        column("launch_dur_ns", pl.Int64, "duration of that call", "ns", "unlinked"),
        column("launch_thread", pl.Int32, "thread of that call", missing="unlinked"),
        column("op_event", pl.UInt32, "innermost op around the launch", missing="unlinked or outside every op"),
        column(
            "step_launched", pl.Int64, "step during which it was launched", missing="unlinked or outside every step"
        ),
        column("step_ran", pl.Int64, "step during which it started to run", missing="outside every step"),
    ),
)

OP_TREE = Table(
    name="op_tree",
    kind="derived",
    meaning="Nesting, own time and device time of every op.",
    columns=(
        column("event", pl.UInt32, "event of the op"),
        column("thread", pl.Int32, "thread"),
        column("depth", pl.Int32, "ops around it on its thread"),
        column("parent", pl.UInt32, "innermost op around it", missing="outermost"),
        column("root", pl.UInt32, "outermost op around it (itself when outermost)"),
        column("self_ns", pl.Int64, "duration less that of the ops directly inside", "ns"),
        column("device_self_ns", pl.Int64, "device work launched by it, not by ops inside", "ns"),
        column("device_total_ns", pl.Int64, "device work launched by it and by ops inside", "ns"),
        column("python_event", pl.UInt32, "innermost Python call around it", missing="no Python rows around it"),
        _step(),
    ),
)

FRAMES = Table(
    name="frames",
    kind="derived",
    meaning="Every distinct name among the Python rows, taken apart.",
    columns=(
        column("name", TEXT, "name of the Python row"),
        column("file", pl.String, "file as written in the trace", missing="built-in or module row"),
        column(
            "line",
            pl.Int32,
            "line of the def; of a call that ran already when the recording began, if nothing tells its def, "
            "the line it was at",
            missing="built-in or module row",
        ),
        column("function", pl.String, "function, built-in or module"),
        column("kind", TEXT, "user, library, builtin or module"),
    ),
)

OP_PLACES = Table(
    name="op_places",
    kind="derived",
    meaning="Where in the user's code each op comes from; backward ops take the place of their forward op.",
    columns=(column("event", pl.UInt32, "event of the op"), *_place()),
)

STEP_TIMES = Table(
    name="step_times",
    kind="derived",
    meaning="Steps of the window with what the device (or main thread) did in each.",
    columns=(
        column("number", pl.Int64, "number of the step"),
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration by the host's marks", "ns"),
        column("busy_ns", pl.Int64, "device (or main thread) busy within the marks", "ns", "device work is missing"),
    ),
)

LOADER_SPANS = Table(
    name="loader_spans",
    kind="derived",
    meaning="Spans in which a thread that drives training was inside a data loader's next.",
    columns=(
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        column("thread", pl.Int32, "thread"),
        column("source", TEXT, "annotation, python or measured: what showed it"),
        column("single_process", pl.Boolean, "whether batches are made on that thread itself", missing="cannot tell"),
        column("idle_ns", pl.Int64, "part of it during which the device (or main thread) did no training work", "ns"),
        _step(),
        *_place(),
    ),
)

BLOCKING_CALLS = Table(
    name="blocking_calls",
    kind="derived",
    meaning="Host calls that wait for the device.",
    columns=(
        column("event", pl.UInt32, "event of the runtime row"),
        column("name", TEXT, "runtime call"),
        column("kind", TEXT, "read_back (copy to host), pageable_upload, synchronize or event"),
        column("explicit", pl.Boolean, "whether the user's code asked for it (no op around it)"),
        column("thread", pl.Int32, "thread that waits"),
        column("ts_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        column("op_event", pl.UInt32, "innermost op around it", missing="none"),
        column("copy_event", pl.UInt32, "copy it waits for", missing="none"),
        column("size_bytes", pl.Int64, "bytes of that copy", "bytes", "none"),
        column(
            "gap_ns",
            pl.Int64,
            "device idle from the last work before the return to the first launched after, "
            "clipped at the next such call",
            "ns",
        ),
        _step(),
        *_place(),
    ),
)

IDLE_SPANS = Table(
    name="idle_spans",
    kind="derived",
    meaning="The idle time of the window, cut so that every piece has exactly one root cause.",
    columns=(
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        column("cause", TEXT, "one of the causes of the JSON contract"),
        column("inferred", pl.Boolean, "true where no row on the critical thread confirmed it"),
        column(
            "thread", pl.Int32, "critical thread: the one that launched the work which ended the gap", missing="none"
        ),
        column("event", pl.UInt32, "event that shows the cause", missing="none"),
        _step(),
    ),
)

BREAKDOWN = Table(
    name="breakdown",
    kind="derived",
    meaning="Where the step goes; the parts add up to the window.",
    columns=(
        column("part", TEXT, "compute, exposed_communication, exposed_copies, idle_<cause>"),
        column("ns", pl.Int64, "time in the window", "ns"),
        column("ns_per_step", pl.Int64, "that divided by the steps", "ns", "no steps known"),
        column("share", pl.Float64, "of the window, 0..1"),
    ),
)

OP_STATS = Table(
    name="op_stats",
    kind="derived",
    meaning="Ops of the window by name. On a device self_ns is device time, else the thread's own time.",
    columns=(
        column("name", TEXT, "name of the op"),
        column("count", pl.Int64, "calls"),
        column("host_self_ns", pl.Int64, "own time on the host", "ns"),
        column("host_total_ns", pl.Int64, "time on the host, ops inside included once", "ns"),
        column("device_self_ns", pl.Int64, "device work it launched itself", "ns", "no device"),
        column("self_ns", pl.Int64, "what ranks it: device_self_ns, without a device host_self_ns", "ns"),
        column("share", pl.Float64, "of the sum of self_ns, 0..1"),
        *_place(),
    ),
)

KERNEL_STATS = Table(
    name="kernel_stats",
    kind="derived",
    meaning="Kernels, copies and sets of the window by name.",
    columns=(
        column("name", TEXT, "name"),
        column("kind", TEXT, "kernel, collective, copy or set"),
        column("count", pl.Int64, "executions"),
        column("self_ns", pl.Int64, "sum of durations", "ns"),
        column("mean_ns", pl.Float64, "mean duration", "ns"),
        column("share", pl.Float64, "of the sum of self_ns, 0..1"),
        *_place(),
    ),
)

STACKS = Table(
    name="stacks",
    kind="derived",
    meaning="Time of the window by whole stack, from Python over ops to kernels: what flame graphs are drawn from.",
    columns=(
        column("stack", TEXT, "names from the outermost on, with ; between"),
        column("self_ns", pl.Int64, "host time of the innermost one itself", "ns"),
        column("device_ns", pl.Int64, "time of the kernel, copy or set at its end", "ns"),
        column("count", pl.Int64, "occurrences"),
    ),
)

DERIVED = (
    WINDOW,
    TOTALS,
    DEVICE_WORK,
    OP_TREE,
    FRAMES,
    OP_PLACES,
    STEP_TIMES,
    LOADER_SPANS,
    BLOCKING_CALLS,
    IDLE_SPANS,
    BREAKDOWN,
    OP_STATS,
    KERNEL_STATS,
    STACKS,
    *METRICS,
    *GRAPH_TABLES,
)
