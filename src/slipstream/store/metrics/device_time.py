"""Metrics of what the device did, and when it did nothing."""

import polars as pl

from slipstream.store.column import column
from slipstream.store.metrics.metric import Metric, place, spread, stream
from slipstream.store.recorded import TEXT

_UNION = "Union of intervals, exact to the nanosecond; no published tool's numbers are assumed."

OVERLAP = Metric(
    name="overlap",
    kind="derived",
    meaning="What ran at the same time on each device: the window, and each step, cut into classes of overlap.",
    definition=(
        "Every moment of the window belongs to exactly one class: which of compute (kernels other than collectives, "
        "fills), communication (collective kernels) and copy was running on the device, or idle. The classes of the "
        "window add up to its length, those of a step to the time between its marks; work that a step launched and "
        "that ran after its mark counts where it ran. On the analysed device communication without compute is the "
        "breakdown's exposed_communication, and copy alone its exposed_copies."
    ),
    source=_UNION,
    columns=(
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("step", pl.Int64, "number of the step", missing="the whole window"),
        column(
            "overlap",
            TEXT,
            "idle, compute, communication, copy, or several joined by +",
        ),
        column("ns", pl.Int64, "time", "ns"),
        column("share", pl.Float64, "of the window or step, 0..1"),
    ),
)

STREAM_IDLE = Metric(
    name="stream_idle",
    kind="derived",
    meaning="Busy and idle time of each stream, and of each device over all its streams.",
    definition=(
        "Busy is the union of the work's intervals, clipped to the window; idle is the window less busy. What lies "
        "before the first work and after the last is idle as well, and told apart. Stream 0, where other vendors run "
        "everything, is a stream like any other; so is one whose work is shorter than a microsecond."
    ),
    source=_UNION,
    columns=(
        *stream(),
        column("scope", TEXT, "device or stream"),
        column("count", pl.Int64, "kernels, copies and fills that overlap the window"),
        column("sum_ns", pl.Int64, "sum of their durations within the window", "ns"),
        column("busy_ns", pl.Int64, "union of them", "ns"),
        column("idle_ns", pl.Int64, "window less busy", "ns"),
        column("idle_share", pl.Float64, "of the window, 0..1", missing="the window has no length"),
        column("before_first_ns", pl.Int64, "idle from the start of the window to the first work", "ns"),
        column("after_last_ns", pl.Int64, "idle from the last work to the end of the window", "ns"),
        column("gaps", pl.Int64, "idle stretches, those at the borders included"),
        column("longest_idle_ns", pl.Int64, "longest of them", "ns"),
    ),
)

EXPOSED_COLLECTIVES = Metric(
    name="exposed_collectives",
    kind="derived",
    meaning="Communication of the window by operation and group, and how much of it no compute kernel hides.",
    definition=(
        "A kernel communicates when its arguments or its name say so (table collectives). exposed = the union of the "
        "group's kernels less the union of all compute kernels on the same device. Where collectives of several "
        "groups overlap each other their exposed times overlap too, so that the rows may add up to more than the "
        "whole, which is totals.exposed_comm_ns."
    ),
    source="Union-of-intervals definition of exposed communication.",
    columns=(
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("operation", TEXT, "all_reduce, all_gather, ...", missing="not told"),
        column("group_name", TEXT, "process group", missing="not told"),
        column("group_size", pl.Int32, "ranks taking part", missing="not told"),
        column("dtype", TEXT, "element type", missing="not told"),
        column("count", pl.Int64, "collectives"),
        column("in_elements", pl.Int64, "elements sent per rank, summed", missing="not told of any"),
        column("out_elements", pl.Int64, "elements received per rank, summed", missing="not told of any"),
        column("sum_ns", pl.Int64, "sum of durations, waiting for other ranks included", "ns"),
        column("comm_ns", pl.Int64, "union of them", "ns"),
        column("exposed_ns", pl.Int64, "part of comm_ns without compute", "ns"),
        column("exposed_share", pl.Float64, "of comm_ns, 0..1", missing="comm_ns is 0"),
    ),
)

COPY_BANDWIDTH = Metric(
    name="copy_bandwidth",
    kind="derived",
    meaning="Copies of the window by kind and kind of host memory, with the bandwidth they reached.",
    definition=(
        "bw_gbps = bytes of all copies with a known size / their summed durations, in 10^9 bytes per second: large "
        "copies weigh more. The median is that of single copies. Copies of no duration have no bandwidth and are "
        "left out of it, but counted (a trace writes their bandwidth as inf)."
    ),
    source="Plain quotient of the recorded bytes and durations.",
    columns=(
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("kind", TEXT, "HtoD, DtoH, DtoD, HtoH, PtoP", missing="not told"),
        column("pageable", pl.Boolean, "whether the host side is pageable memory", missing="no host side or not told"),
        column("count", pl.Int64, "copies"),
        column("unmeasured", pl.Int64, "of them without size or duration"),
        column("size_bytes", pl.Int64, "bytes", "bytes", "no size told"),
        column("sum_ns", pl.Int64, "sum of durations", "ns"),
        column("bw_gbps", pl.Float64, "bandwidth of all", "10^9 bytes/s", "none is measured"),
        column("median_bw_gbps", pl.Float64, "median of single copies", "10^9 bytes/s", "none is measured"),
        column("max_bw_gbps", pl.Float64, "greatest of single copies", "10^9 bytes/s", "none is measured"),
    ),
)

KERNEL_GROUPS = Metric(
    name="kernel_groups",
    kind="derived",
    meaning="Kernels, copies and fills of the window by name, input shapes, module and place.",
    definition=(
        "One row per name, op that launched it, shapes and types of that op's inputs, module and place in the user's "
        "code. Every figure is made from the single events. What starts in the window belongs to it, from its first "
        "to its last step, whether it takes a second or less than a microsecond."
    ),
    source="Plain statistics of the recorded durations.",
    columns=(
        column("name", TEXT, "name"),
        column("kind", TEXT, "kernel, collective, copy or set"),
        column("op", TEXT, "op that launched it", missing="unlinked or outside every op"),
        column("input_dims", pl.String, "shapes of that op's inputs as JSON", missing="shapes not recorded"),
        column("input_types", pl.String, "types of that op's inputs as JSON", missing="shapes not recorded"),
        column("module", TEXT, "path of the module (see op_modules)", missing="outside every module, or not recorded"),
        column("count", pl.Int64, "executions"),
        column("sum_ns", pl.Int64, "sum of durations", "ns"),
        *spread("the durations"),
        column("share", pl.Float64, "of the sum of all rows, 0..1"),
        *place(),
    ),
)

KERNEL_SEQUENCES = Metric(
    name="kernel_sequences",
    kind="derived",
    meaning="Sequences of two to five kernels that occur again and again on one stream: candidates for fusion.",
    definition=(
        "Kernels (collectives included, copies and fills not) of each stream within the window in the order in which "
        "they ran, which on one stream is the order of launch. Occurrences of one sequence do not overlap: A A A "
        "holds A A once. Only sequences that occur at least twice are listed."
    ),
    source="n-grams of kernel names.",
    columns=(
        *stream(),
        column("length", pl.Int32, "kernels in the sequence"),
        column("names", pl.String, "their names, one per line"),
        column("count", pl.Int64, "occurrences that do not overlap"),
        column("kernel_ns", pl.Int64, "time of the kernels in them", "ns"),
        column("span_ns", pl.Int64, "from the start of the first to the end of the last kernel, summed", "ns"),
        column("gap_ns", pl.Int64, "part of that in which none of the sequence ran", "ns"),
        column("share", pl.Float64, "of the time of all kernels of the window, 0..1", missing="that is 0"),
    ),
)

OCCUPANCY = Metric(
    name="occupancy",
    kind="derived",
    meaning="How well kernels of the window fill the device, by name: estimates from their launch arguments.",
    definition=(
        "occupancy_share is what the profiler estimated, weighted by duration. resident_share is worked out here: "
        "warps of the blocks that one multiprocessor holds at once / the warps it can hold, where registers, shared "
        "memory, threads and block slots set the limit. sm_share = min(1, blocks / multiprocessors): below 1 some of "
        "them had nothing to do. waves = blocks / blocks that run at once on the device; tail_share is the unused "
        "part of the last wave over all waves. Limits of devices are data rows with their source; of an unknown "
        "device only what the recording tells is known: the number of multiprocessors follows from blocks and blocks "
        "per multiprocessor."
    ),
    source="CUDA C++ Programming Guide, technical specifications per compute capability; Kineto's kernel arguments.",
    columns=(
        column("name", TEXT, "name of the kernel"),
        column("count", pl.Int64, "executions"),
        column("sum_ns", pl.Int64, "sum of durations", "ns"),
        column("blocks", pl.Float64, "blocks per launch, weighted by duration", missing="not told"),
        column("threads", pl.Float64, "threads per block, weighted by duration", missing="not told"),
        column("multiprocessors", pl.Int32, "multiprocessors of the device", missing="unknown device and not told"),
        column("occupancy_share", pl.Float64, "the profiler's estimate, 0..1", missing="not told"),
        column("resident_share", pl.Float64, "possible by registers, memory, threads, 0..1", missing="unknown"),
        column("limit", TEXT, "what limits that: registers, shared_memory, threads or blocks", missing="unknown"),
        column("sm_share", pl.Float64, "multiprocessors with at least one block, 0..1", missing="unknown"),
        column("waves", pl.Float64, "blocks / blocks at once", missing="unknown"),
        column("tail_share", pl.Float64, "block slots left empty by the last wave, 0..1", missing="unknown"),
    ),
)

DEVICE_TIME = (
    OVERLAP,
    STREAM_IDLE,
    EXPOSED_COLLECTIVES,
    COPY_BANDWIDTH,
    KERNEL_GROUPS,
    KERNEL_SEQUENCES,
    OCCUPANCY,
)
