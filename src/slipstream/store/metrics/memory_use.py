"""Metrics of memory."""

import polars as pl

from slipstream.store.column import Column, column
from slipstream.store.metrics.metric import Metric
from slipstream.store.recorded import TEXT


def _device() -> tuple[Column, Column]:
    return (
        column("device_type", pl.Int32, "0 CPU, 1 CUDA (also ROCm), others as in torch", missing="not told"),
        column("device", pl.Int32, "device ordinal, -1 for the CPU", missing="not told"),
    )


MEMORY_TIMELINE = Metric(
    name="memory_timeline",
    kind="derived",
    meaning="Memory in use over time, by device, with the op and phase behind every change.",
    definition=(
        "allocated_bytes is the allocator's own total where it was recorded. Else it is the running sum of the "
        "changes from the start of the recording: what was allocated before is not in it, and it may fall below 0. "
        "The op is the innermost one around the change on its thread, but for aten::empty and its like that allocate "
        "for the op around them."
    ),
    source="Memory rows of torch.profiler (profile_memory).",
    columns=(
        column("event", pl.UInt32, "event of the memory row"),
        *_device(),
        column("ts_ns", pl.Int64, "position", "ns"),
        column("size_bytes", pl.Int64, "change, negative for a release", "bytes"),
        column("allocated_bytes", pl.Int64, "in use after it", "bytes"),
        column("reserved_bytes", pl.Int64, "held by the allocator after it", "bytes", "not told"),
        column("relative", pl.Boolean, "true where in use counts from the start of the recording"),
        column("op", TEXT, "op around it that needed it", missing="outside every op"),
        column("phase", TEXT, "phase of training", missing="in none, or not known"),
        column("step", pl.Int64, "number of the step", missing="outside every step"),
        column("freed_ns", pl.Int64, "when what it allocated was released", "ns", "a release, not seen, or no address"),
    ),
)

MEMORY_PEAK = Metric(
    name="memory_peak",
    kind="derived",
    meaning="What was in use at the peak of each device, by the phase and the op that allocated it.",
    definition=(
        "The peak is the greatest allocated_bytes of memory_timeline within the window, the first of equals. In use "
        "at that moment is what had been allocated and not yet released, matched by address. A recording cannot tell "
        "a gradient from an activation: the phase during which something was allocated is what is known, and called "
        "so (allocated in forward: mostly activations; in backward: gradients and temporaries; in optimizer: its "
        "state). What was there before the recording began (mostly parameters) is a row of its own, so that the rows "
        "add up to the peak; where in use counts from the start of the recording, that row is what was released of it, "
        "below 0."
    ),
    source="memory_timeline.",
    columns=(
        *_device(),
        column("peak_ns", pl.Int64, "position of the peak", "ns"),
        column("peak_bytes", pl.Int64, "in use at the peak", "bytes"),
        column("origin", TEXT, "recording, or before_recording"),
        column("phase", TEXT, "phase in which it was allocated", missing="in none, or not known"),
        column("op", TEXT, "op that needed it", missing="outside every op, or not known"),
        column("count", pl.Int64, "allocations", missing="before the recording"),
        column("live_bytes", pl.Int64, "in use at the peak", "bytes"),
        column("share", pl.Float64, "of the peak", missing="the peak is not above 0"),
    ),
)

MEMORY_USE = (MEMORY_TIMELINE, MEMORY_PEAK)
