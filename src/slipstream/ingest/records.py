"""The shape of trace elements and of their ``args``, one record per kind of row.

``args`` stays undecoded until it is known what kind of row an element is: most keys of a trace are then never
looked at, and damage inside one ``args`` cannot spoil others.
"""

from typing import Any, Literal

import msgspec
from msgspec import Raw, field

Number = int | float | str | None
"""Exporters write numbers as numbers or as strings, sometimes both in one file."""
EMPTY = Raw(b"{}")
ABSENT = Raw(b"")


class Event(msgspec.Struct, gc=False):
    """One element of ``traceEvents``."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Number = None
    tid: Number = None
    ts: Number = None
    dur: Number = None
    id: Number = None
    args: Raw = EMPTY


class KnownEvent(Event, gc=False):
    """The same where phase and category are well-known words: decoding then makes no new texts of them."""

    ph: Literal["X", "i", "s", "f", "t", "M", "C"] | None = None
    cat: (
        Literal[
            "cpu_op",
            "user_annotation",
            "python_function",
            "cuda_runtime",
            "cuda_driver",
            "kernel",
            "gpu_memcpy",
            "gpu_memset",
            "gpu_user_annotation",
            "cuda_sync",
            "cpu_instant_event",
            "ac2g",
            "fwdbwd",
            "overhead",
            "Trace",
            "Operator",
            "Runtime",
            "Kernel",
            "Memcpy",
            "Memset",
            "async",
            "async_cpu_to_gpu",
            "forward_backward",
            "hip_runtime",
            "hip_driver",
            "xpu_runtime",
            "xpu_driver",
            "mtia_runtime",
            "mtia_ccp_events",
        ]
        | None
    ) = None


class TextEvent(msgspec.Struct, gc=False):
    """The same with the text of its times, for those a float cannot hold to the nanosecond."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Number = None
    tid: Number = None
    ts: Raw = ABSENT
    dur: Raw = ABSENT
    id: Number = None
    args: Raw = EMPTY


class Args(msgspec.Struct, gc=False):
    """Base of all arguments."""


class LinkArgs(Args, gc=False):
    """Ids of host rows; the older schema writes ``external id``."""

    external_id: Number = field(default=None, name="External id")
    external_id_old: Number = field(default=None, name="external id")
    correlation: Number = None


class OpArgs(Args, gc=False):
    """Arguments of an op. Those kept as JSON stay undecoded."""

    external_id: Number = field(default=None, name="External id")
    external_id_old: Number = field(default=None, name="external id")
    sequence: Number = field(default=None, name="Sequence number")
    fwd_thread: Number = field(default=None, name="Fwd thread id")
    concrete_inputs: Raw = field(default=ABSENT, name="Concrete Inputs")
    input_types: Raw = field(default=ABSENT, name="Input type")
    input_strides: Raw = field(default=ABSENT, name="Input Strides")
    input_dims: Raw = field(default=ABSENT, name="Input Dims")
    call_stack: str | None = field(default=None, name="Call stack")
    collective_name: Raw = field(default=ABSENT, name="Collective name")
    kernel_file: Raw = ABSENT


class PythonArgs(Args, gc=False):
    """Arguments of a Python call."""

    python_parent: Number = field(default=None, name="Python parent id")
    python_id: Number = field(default=None, name="Python id")
    module_id: Number = field(default=None, name="Python module id")


class DeviceArgs(Args, gc=False):
    """Arguments of every row on a device."""

    external_id: Number = field(default=None, name="External id")
    external_id_old: Number = field(default=None, name="external id")
    device: Number = None
    stream: Number = None
    correlation: Number = None


class KernelArgs(DeviceArgs, gc=False):
    """Arguments of a kernel."""

    registers: Number = field(default=None, name="registers per thread")
    shared_bytes: Number = field(default=None, name="shared memory")
    blocks_per_sm: Number = field(default=None, name="blocks per SM")
    warps_per_sm: Number = field(default=None, name="warps per SM")
    grid: Raw = ABSENT
    block: Raw = ABSENT
    occupancy_pct: Number = field(default=None, name="est. achieved occupancy %")
    operation: str | None = field(default=None, name="Collective name")
    in_elements: Number = field(default=None, name="In msg nelems")
    out_elements: Number = field(default=None, name="Out msg nelems")
    group_size: Number = field(default=None, name="Group size")
    dtype: str | None = None
    group_name: Number = field(default=None, name="Process Group Name")
    group_ranks: Raw = field(default=ABSENT, name="Process Group Ranks")
    sequence: Number = field(default=None, name="Seq")


class CopyArgs(DeviceArgs, gc=False):
    """Arguments of a copy or a fill."""

    bytes: Number = None
    size: Number = None
    kind: Number = None
    direction: Number = None


class SyncArgs(DeviceArgs, gc=False):
    """Arguments of a synchronisation row."""

    wait_on_stream: Number = None
    wait_on_correlation: Number = field(default=None, name="wait_on_cuda_event_record_corr_id")
    sync_id: Number = field(default=None, name="wait_on_cuda_event_id")


class MemoryArgs(Args, gc=False):
    """Arguments of an allocation or release."""

    device_type: Number = field(default=None, name="Device Type")
    device: Number = field(default=None, name="Device Id")
    address: Number = field(default=None, name="Addr")
    size_bytes: Number = field(default=None, name="Bytes")
    allocated_bytes: Number = field(default=None, name="Total Allocated")
    reserved_bytes: Number = field(default=None, name="Total Reserved")


class MetadataArgs(Args, gc=False):
    """Arguments of a metadata element."""

    given: Number = field(default=None, name="name")


def lenient(shape: type[Args], raw: bytes) -> Args:
    """Decode arguments of which some value has an unexpected type: that value alone is left out."""
    try:
        values = msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return shape()
    kept: dict[str, Any] = {}
    for part in msgspec.structs.fields(shape):
        if part.encode_name in values:
            try:
                kept[part.name] = msgspec.json.decode(values[part.encode_name], type=part.type)
            except (msgspec.DecodeError, RecursionError):
                continue
    return shape(**kept)
