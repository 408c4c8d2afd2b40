"""Metrics of the host: launches, phases, modules, ops."""

import polars as pl

from slipstream.store.column import column
from slipstream.store.metrics.metric import Metric, place, spread, stream
from slipstream.store.recorded import TEXT

QUEUE_DEPTHS = Metric(
    name="queue_depths",
    kind="derived",
    meaning="Length of each stream's queue over the whole recording, one row per change.",
    definition=(
        "A launch stands in the queue from the start of its call to the start of the first work it put on the "
        "stream: a replayed graph is one entry, however many kernels it holds. Work whose launch is not known is "
        "left out (see queue_stats.unlinked)."
    ),
    source="Launch calls and device work joined by correlation.",
    columns=(
        *stream(),
        column("ts_ns", pl.Int64, "position of the change", "ns"),
        column("depth", pl.Int64, "launches waiting from then on"),
    ),
)

QUEUE_STATS = Metric(
    name="queue_stats",
    kind="derived",
    meaning="Each stream's queue in the window: how long, how often empty, and how long the host stood before it.",
    definition=(
        "mean_depth is weighted by time. The host is blocked while it is inside a launch call and the stream's queue "
        "is full. Full is the known limit of the runtime: CUDA takes 1,024 launches per stream (seen in practice, not "
        "promised in its documents), counted from one less; other runtimes' limits are not known here."
    ),
    source="queue_depths; the limit is an observation of public traces.",
    columns=(
        *stream(),
        column("launches", pl.Int64, "launches of the window whose work ran on the stream"),
        column("unlinked", pl.Int64, "work of the window on it without a known launch"),
        column("mean_depth", pl.Float64, "mean length", missing="the window has no length"),
        column("max_depth", pl.Int64, "greatest length"),
        column("empty_share", pl.Float64, "of the window with an empty queue, 0..1", missing="no length"),
        column("blocked_ns", pl.Int64, "host in a launch call while the queue was full", "ns", "limit not known"),
    ),
)

LAUNCH_DELAYS = Metric(
    name="launch_delays",
    kind="derived",
    meaning="Time from a launch to the start of its work, by stream and kind.",
    definition=(
        "delay = start of the work less start of its launch call, for the first work of each launch on a stream (a "
        "replayed graph has one). Where the stream was idle when the call began, the delay is latency alone; else the "
        "work waited for what ran before. A start before its launch, by clocks that disagree, counts as 0. short are "
        "kernels that took less time than the call that launched them: the host cannot keep ahead of those."
    ),
    source="Launch calls and device work joined by correlation.",
    columns=(
        *stream(),
        column("kind", TEXT, "kernel, collective, copy or set"),
        column("count", pl.Int64, "launches of the window whose work is known"),
        column("unlinked", pl.Int64, "work of the window without a known launch"),
        *spread("the delays"),
        column("queued", pl.Int64, "launches that found the stream busy"),
        column("latency_median_ns", pl.Float64, "median delay of the others", "ns", "there are none"),
        column("call_median_ns", pl.Float64, "median duration of the launch calls", "ns"),
        column("short", pl.Int64, "kernels shorter than their launch call"),
    ),
)

PHASE_SPANS = Metric(
    name="phase_spans",
    kind="derived",
    meaning="Phases of training on the host: data, forward, backward, zero_grad, optimizer; spans never overlap.",
    definition=(
        "What was measured by the capture first, then what ranges of the trace say (Optimizer.step#, "
        "Optimizer.zero_grad#, ranges named forward, backward, optimizer, the loader's), then the call of the "
        "autograd engine, then the outermost modules (forward). Only where none of these shows them do ops: backward "
        "from the first to the last backward op between two other phases, forward likewise the ops that autograd "
        "numbered, if a backward follows. Where two overlap the better source wins, and of one source optimizer, "
        "zero_grad, backward, data, forward in this order."
    ),
    source="torch.profiler's own ranges of optimizers and loaders; nodes of autograd name the thread of their forward.",
    columns=(
        column("phase", TEXT, "data, forward, backward, zero_grad or optimizer"),
        column("step", pl.Int64, "number of the step it started in", missing="outside every step"),
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        column("basis", TEXT, "measured, annotation, call, module or ops: what showed it"),
    ),
)

PHASE_STATS = Metric(
    name="phase_stats",
    kind="derived",
    meaning="Time of each phase per step, on the host and of the device work launched in it.",
    definition=(
        "host_ns is what of the phase's spans lies within the step's marks. Device work belongs to the phase and the "
        "step during which it was launched, whatever runs when it runs. Work launched in no phase, or by nobody "
        "known, is a row of its own, so that the rows add up to all device work of the recording."
    ),
    source="phase_spans and launches.",
    columns=(
        column("step", pl.Int64, "number of the step", missing="launched outside every step, or unlinked"),
        column("phase", TEXT, "phase", missing="in none of them, or not known"),
        column("host_ns", pl.Int64, "time on the host", "ns", "no phase"),
        column("device_ns", pl.Int64, "sum of device work launched in it", "ns", "no device work in the recording"),
        column("device_busy_ns", pl.Int64, "union of that work", "ns", "no device work in the recording"),
    ),
)

OP_MODULES = Metric(
    name="op_modules",
    kind="derived",
    meaning="The module each op belongs to; backward ops belong to the module of their forward op.",
    definition=(
        "The innermost nn.Module call around the op on its thread, named by the path of module calls around it "
        "(Model_0/Encoder_0/Linear_3: a trace numbers the modules of a class, their names in the model are not in "
        "it). Without such rows, from the op's recorded stack: its functions named forward. Ops inside others and "
        "backward nodes inherit."
    ),
    source="Python rows of with_stack/with_modules; autograd's sequence numbers.",
    columns=(
        column("event", pl.UInt32, "event of the op"),
        column("module", TEXT, "path", missing="outside every module"),
        column("call_event", pl.UInt32, "event of the innermost module call", missing="outside, or from a stack"),
        column("backward", pl.Boolean, "whether it is part of the backward pass of that module"),
        column("basis", TEXT, "rows or stacks", missing="outside every module"),
    ),
)

MODULE_STATS = Metric(
    name="module_stats",
    kind="derived",
    meaning="The tree of modules in the window: calls, time on the host and of the device, with and without children.",
    definition=(
        "One row per path. total includes the modules inside, self does not. Device work counts for the module during "
        "whose call it was launched; backward work for the module of its forward op. What belongs to no module is a "
        "row without path, so that device_self_ns and backward_device_self_ns of all rows add up to the device work "
        "of the window. From stacks there are no calls: host times are then those of the ops."
    ),
    source="op_modules and launches.",
    columns=(
        column("module", TEXT, "path", missing="belongs to no module"),
        column("parent", TEXT, "path of the module around it", missing="outermost, or no module"),
        column("name", TEXT, "last part of the path", missing="no module"),
        column("depth", pl.Int32, "modules around it", missing="no module"),
        column("calls", pl.Int64, "calls", missing="no module, or from stacks"),
        column("host_total_ns", pl.Int64, "time of the calls", "ns", "no module"),
        column("host_self_ns", pl.Int64, "less modules inside", "ns", "no module"),
        column(
            "device_total_ns", pl.Int64, "work launched by forward calls, modules inside included", "ns", "no device"
        ),
        column("device_self_ns", pl.Int64, "the same without modules inside", "ns", "no device"),
        column(
            "backward_device_total_ns", pl.Int64, "work of its backward, modules inside included", "ns", "no device"
        ),
        column("backward_device_self_ns", pl.Int64, "the same without modules inside", "ns", "no device"),
    ),
)

OP_GROUPS = Metric(
    name="op_groups",
    kind="derived",
    meaning="Ops of the window by name, input shapes and types, module and place.",
    definition=(
        "One row per distinct combination. Inclusive times (total) count an op inside another of the same group once; "
        "exclusive ones (self) leave out ops inside. Mean, median, greatest and deviation are those of the single "
        "calls' durations on the host, and of the device work of single calls. What starts in the window belongs to it."
    ),
    source="Plain statistics of the recorded durations.",
    columns=(
        column("name", TEXT, "name of the op"),
        column("input_dims", pl.String, "shapes of the inputs as JSON", missing="shapes not recorded"),
        column("input_types", pl.String, "types of the inputs as JSON", missing="shapes not recorded"),
        column("module", TEXT, "path of the module", missing="outside every module, or not recorded"),
        column("count", pl.Int64, "calls"),
        column("host_total_ns", pl.Int64, "time on the host, ops inside included", "ns"),
        column("host_self_ns", pl.Int64, "time on the host, ops inside left out", "ns"),
        *spread("the durations on the host"),
        column("device_total_ns", pl.Int64, "device work of it and ops inside", "ns", "no device work is linked"),
        column("device_self_ns", pl.Int64, "device work it launched itself", "ns", "no device work is linked"),
        column("device_mean_ns", pl.Float64, "mean device work per call, ops inside included", "ns", "as above"),
        column("device_median_ns", pl.Float64, "median of the same", "ns", "as above"),
        column("device_max_ns", pl.Int64, "greatest of the same", "ns", "as above"),
        column("device_std_ns", pl.Float64, "standard deviation of the same", "ns", "as above"),
        *place(),
    ),
)

HOST_TIME = (
    QUEUE_DEPTHS,
    QUEUE_STATS,
    LAUNCH_DELAYS,
    PHASE_SPANS,
    PHASE_STATS,
    OP_MODULES,
    MODULE_STATS,
    OP_GROUPS,
)
