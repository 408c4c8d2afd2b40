"""The JSON contract, `format_version` 1: what every command that diagnoses publishes.

Times are integer nanoseconds. Positions (``ts_ns``, ``start_ns``) count from the earliest event of the
file, whose absolute origin is ``Source.origin_ns``. Shares lie in 0..1. Missing is ``None``, never 0.
The JSON Schema in ``docs/schema/`` is generated from these records.
"""

from typing import Literal

import msgspec

from slipstream.model.finding import Dismissal, Finding, Location

FORMAT_VERSION = 1

DeviceKind = Literal["cuda", "rocm", "xpu", "mtia", "npu", "mps", "cpu", "unknown"]
TraceFormat = Literal["kineto", "tensorboard_dir", "run_folder"]
Grade = Literal["A", "B", "C", "D", "E", "F"]
Cause = Literal[
    "loader",
    "preprocessing",
    "sync",
    "launch",
    "allocator",
    "host",
    "gc",
    "compile",
    "comm_wait",
    "graph_capture",
    "end_of_data",
    "unattributed",
]
CAUSES: tuple[Cause, ...] = (
    "loader",
    "preprocessing",
    "sync",
    "launch",
    "allocator",
    "host",
    "gc",
    "compile",
    "comm_wait",
    "graph_capture",
    "end_of_data",
    "unattributed",
)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recording came from."""

    path: str
    format: TraceFormat
    origin_ns: str | None
    """Absolute time of position 0 in epoch ns, as a decimal string (it exceeds what JavaScript holds);
    null when the file tells no absolute time."""
    torch_version: str | None = None
    device: str | None = None
    """The vendor's name of the device, or null."""
    device_kind: DeviceKind = "unknown"
    rank: int | None = None
    world_size: int | None = None


class IntegrityIssue(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of repair or doubt, with how often it occurred."""

    code: str
    count: int
    text: str


class Integrity(msgspec.Struct, frozen=True, kw_only=True):
    """How far the figures of a recording can be trusted.

    Grades: A nothing repaired; B repairs without effect on totals; C below 1 % of device time affected;
    D file cut, or below 10 %; E 10 % and more, or totals are lower bounds; F nothing usable.
    """

    grade: Grade
    issues: tuple[IntegrityIssue, ...] = ()
    linked_kernel_share: float | None = None
    """Share of kernels whose launch was found; null without kernels."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One training (or inference) step."""

    number: int
    start_ns: int
    dur_ns: int
    inferred: bool = False


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums and unions over the whole file; device times are null where there was no device."""

    events: int
    gpu_events: int
    kernels: int
    gpu_sum_ns: int | None
    gpu_busy_ns: int | None
    kernel_sum_ns: int | None
    comm_ns: int | None
    exposed_comm_ns: int | None
    memcpy_ns: int | None
    exposed_memcpy_ns: int | None


class IdleCause(msgspec.Struct, frozen=True, kw_only=True):
    """Idle time of the window with one root cause."""

    cause: Cause
    ns: int
    inferred: bool
    """True where no Python row confirmed what the thread did."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the recording that is diagnosed; the idle causes add up to ``idle_ns``."""

    start_ns: int
    end_ns: int
    busy_ns: int | None
    idle_ns: int | None
    idle_causes: tuple[IdleCause, ...]


class BreakdownPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the device's (on CPU training: the main thread's) time; the parts add up to the step."""

    part: str
    ns_per_step: int | None
    share: float


class Hot(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the most expensive ops or kernels."""

    name: str
    count: int
    self_ns: int
    share: float
    location: Location | None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="diagnosis"):
    """The whole answer for one recording."""

    format_version: int = FORMAT_VERSION
    source: Source
    integrity: Integrity
    steps: tuple[Step, ...]
    totals: Totals
    window: Window
    breakdown: tuple[BreakdownPart, ...]
    top_ops: tuple[Hot, ...]
    top_kernels: tuple[Hot, ...]
    findings: tuple[Finding, ...]
    dismissed: tuple[Dismissal, ...]
    not_checked: tuple[Dismissal, ...]


class RanksDiagnosis(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ranks"):
    """A directory of ranks: one diagnosis each."""

    format_version: int = FORMAT_VERSION
    ranks: tuple[Diagnosis, ...]
