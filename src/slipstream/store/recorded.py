"""The tables that a trace file fills. Positions count from the earliest event of the file.

``event`` is the position of an element in ``traceEvents``; it identifies a row in every table.
``thread`` is an index into ``threads``.
"""

import polars as pl

from slipstream.store.column import Column, Table, column

TEXT = pl.Categorical()


def _event() -> Column:
    return column("event", pl.UInt32, "position of the element in traceEvents")


def _name(meaning: str = "name of the event") -> Column:
    return column("name", TEXT, meaning)


def _thread(missing: str = "") -> Column:
    return column("thread", pl.Int32, "row of the threads table", missing=missing)


def _span() -> tuple[Column, Column]:
    return (
        column("ts_ns", pl.Int64, "start, from the earliest event of the file", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
    )


def _device() -> tuple[Column, ...]:
    return (
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("stream", pl.Int64, "stream (queue) on the device", missing="not told"),
        *_span(),
        column("correlation", pl.Int64, "id shared with the launching runtime row", missing="none or 0"),
        column("external_id", pl.Int64, "id of the op that launched it", missing="not told"),
    )


EVENTS = Table(
    name="events",
    kind="recorded",
    meaning="Every element of traceEvents that has a phase and is no metadata, whatever else describes it.",
    columns=(
        _event(),
        column("phase", TEXT, "ph of the element: X complete, i instant, s/f flow, C counter, ..."),
        column("category", TEXT, "cat of the element in the newer schema's words", missing="none given"),
        _name(),
        _thread(),
        column("ts_ns", pl.Int64, "start, from the earliest event of the file", "ns", "not told or unusable"),
        column("dur_ns", pl.Int64, "duration", "ns", "no complete event"),
    ),
)

THREADS = Table(
    name="threads",
    kind="recorded",
    meaning="Every pair of process and thread that an event names; devices' streams appear as threads too.",
    columns=(
        column("thread", pl.Int32, "index"),
        column("pid", pl.String, "process id as text", missing="not told"),
        column("tid", pl.String, "thread id as text", missing="not told"),
        column("process_name", pl.String, "name given by metadata", missing="none given"),
        column("thread_name", pl.String, "name given by metadata", missing="none given"),
    ),
)

OPS = Table(
    name="ops",
    kind="recorded",
    meaning="Ops on the host (aten::..., autograd nodes, custom ops), one row per call.",
    columns=(
        _event(),
        _name(),
        _thread(),
        *_span(),
        column("external_id", pl.Int64, "id that device rows and runtime rows refer to", missing="not told"),
        column("sequence", pl.Int64, "autograd sequence number, shared by forward and backward", missing="none"),
        column("fwd_thread", pl.Int64, "thread of the forward op (0: this is the forward)", missing="none"),
        column("input_dims", pl.String, "shapes of the inputs as JSON", missing="shapes not recorded"),
        column("input_types", pl.String, "types of the inputs as JSON", missing="shapes not recorded"),
        column("input_strides", pl.String, "strides of the inputs as JSON", missing="not recorded"),
        column("concrete_inputs", pl.String, "scalar inputs as JSON", missing="not recorded"),
        column("call_stack", TEXT, "Python frames, innermost first, separated by ';'", missing="not recorded"),
        column(
            "args", pl.String, "further arguments as JSON (collectives: those of record_param_comms)", missing="none"
        ),
    ),
)

PYTHON = Table(
    name="python",
    kind="recorded",
    meaning="Python calls (with_stack): functions as 'file(line of def): name', modules as 'nn.Module: Name_n'.",
    columns=(
        _event(),
        _name(),
        _thread(),
        *_span(),
        column("python_id", pl.Int64, "id of the call", missing="not told"),
        column("python_parent", pl.Int64, "id of the calling call", missing="outermost or not told"),
        column("module_id", pl.Int64, "Python module id of an nn.Module call", missing="none"),
    ),
)

RUNTIME = Table(
    name="runtime",
    kind="recorded",
    meaning="Calls of the device's runtime or driver by the host (CUDA, HIP, MTIA, ...).",
    columns=(
        _event(),
        _name(),
        _thread(),
        *_span(),
        column("correlation", pl.Int64, "id shared with the device rows it launched", missing="none or 0"),
        column("external_id", pl.Int64, "id of the op that called", missing="not told"),
    ),
)

KERNELS = Table(
    name="kernels",
    kind="recorded",
    meaning="Kernels on the device, collectives included.",
    columns=(
        _event(),
        _name(),
        *_device(),
        column("grid", pl.String, "blocks in x, y, z as JSON", missing="not told"),
        column("block", pl.String, "threads per block in x, y, z as JSON", missing="not told"),
        column("registers", pl.Int32, "registers per thread", missing="not told"),
        column("shared_bytes", pl.Int64, "shared memory per block", "bytes", "not told"),
        column("blocks_per_sm", pl.Float64, "blocks per multiprocessor", missing="not told"),
        column("warps_per_sm", pl.Float64, "warps per multiprocessor", missing="not told"),
        column("occupancy_share", pl.Float64, "estimated achieved occupancy, 0..1", missing="not told"),
        column("collective", pl.Boolean, "whether it is a collective or point-to-point communication kernel"),
    ),
)

COPIES = Table(
    name="copies",
    kind="recorded",
    meaning="Memory copies by the device.",
    columns=(
        _event(),
        _name(),
        *_device(),
        column("kind", TEXT, "HtoD, DtoH, DtoD, HtoH, PtoP", missing="not told"),
        column("pageable", pl.Boolean, "whether the host side is pageable memory", missing="no host side or not told"),
        column("size_bytes", pl.Int64, "bytes copied", "bytes", "not told"),
    ),
)

SETS = Table(
    name="sets",
    kind="recorded",
    meaning="Memory fills by the device.",
    columns=(
        _event(),
        _name(),
        *_device(),
        column("size_bytes", pl.Int64, "bytes filled", "bytes", "not told"),
    ),
)

SYNCS = Table(
    name="syncs",
    kind="recorded",
    meaning="Synchronisation rows of the device (cuda_sync): stream waits, event and context synchronisation.",
    columns=(
        _event(),
        _name(),
        column("device", pl.Int32, "device ordinal", missing="not told"),
        column("stream", pl.Int64, "stream that waits", missing="all or not told"),
        *_span(),
        column("correlation", pl.Int64, "id shared with the runtime row", missing="none"),
        column("wait_on_stream", pl.Int64, "stream that is waited for", missing="not told"),
        column("wait_on_correlation", pl.Int64, "correlation of the event record waited for", missing="not told"),
        column("sync_id", pl.Int64, "id of the synchronisation event", missing="not told"),
    ),
)

ANNOTATIONS = Table(
    name="annotations",
    kind="recorded",
    meaning="Ranges that people or libraries marked: record_function, ProfilerStep#n, Optimizer.step#..., loader.",
    columns=(
        _event(),
        _name(),
        _thread(),
        column("on_device", pl.Boolean, "whether it is the mark's projection on a device stream"),
        *_span(),
        column("external_id", pl.Int64, "id of the range", missing="not told"),
    ),
)

FLOWS = Table(
    name="flows",
    kind="recorded",
    meaning="Ends of the arrows of a trace.",
    columns=(
        _event(),
        column("kind", TEXT, "ac2g (launch -> device) or fwdbwd (forward -> backward), or as given"),
        column("flow_id", pl.Int64, "id shared by both ends", missing="not told"),
        column("start", pl.Boolean, "true for the tail (s), false for the head (f, t)"),
        _thread(),
        column("ts_ns", pl.Int64, "position", "ns"),
    ),
)

COUNTERS = Table(
    name="counters",
    kind="recorded",
    meaning="Counter samples and profiler ranges with hardware counters.",
    columns=(
        _event(),
        _name(),
        _thread(),
        column("ts_ns", pl.Int64, "position", "ns"),
        column("dur_ns", pl.Int64, "length of the range", "ns", "a sample"),
        column("values", pl.String, "counters and their values as JSON", missing="none"),
    ),
)

COLLECTIVES = Table(
    name="collectives",
    kind="recorded",
    meaning="What is known of each collective kernel; event is that of its row in kernels.",
    columns=(
        _event(),
        column(
            "operation",
            TEXT,
            "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv, ...",
            missing="not told",
        ),
        column("source", TEXT, "how it was recognised: metadata or name"),
        column("dtype", TEXT, "element type", missing="not told"),
        column("in_elements", pl.Int64, "elements sent per rank", missing="not told"),
        column("out_elements", pl.Int64, "elements received per rank", missing="not told"),
        column("group_size", pl.Int32, "ranks taking part", missing="not told"),
        column("group_ranks", pl.String, "ranks as JSON", missing="not told"),
        column("group_name", TEXT, "process group", missing="not told"),
        column("sequence", pl.Int64, "number of the collective in its group", missing="not told"),
    ),
)

MEMORY = Table(
    name="memory",
    kind="recorded",
    meaning="Allocations and releases of the framework's allocators (profile_memory).",
    columns=(
        _event(),
        _thread(),
        column("ts_ns", pl.Int64, "position", "ns"),
        column("device_type", pl.Int32, "0 CPU, 1 CUDA (also ROCm), others as in torch", missing="not told"),
        column("device", pl.Int32, "device ordinal, -1 for the CPU", missing="not told"),
        column("address", pl.UInt64, "address", missing="not told"),
        column("size_bytes", pl.Int64, "bytes, negative for a release", "bytes"),
        column("allocated_bytes", pl.Int64, "total allocated after it", "bytes", "not told"),
        column("reserved_bytes", pl.Int64, "total reserved after it", "bytes", "not told"),
    ),
)

STEPS = Table(
    name="steps",
    kind="recorded",
    meaning="Training (or inference) steps by their marks on the host, in order of time.",
    columns=(
        column("number", pl.Int64, "the mark's own number; counted from 0 where inferred"),
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        _thread("inferred from the device alone"),
        column("inferred", pl.Boolean, "true when there were no marks and repetition was used"),
    ),
)

RECORDED = (
    EVENTS,
    THREADS,
    OPS,
    PYTHON,
    RUNTIME,
    KERNELS,
    COPIES,
    SETS,
    SYNCS,
    ANNOTATIONS,
    FLOWS,
    COUNTERS,
    COLLECTIVES,
    MEMORY,
    STEPS,
)
