"""The published kind ``diff``: what changed between two recordings. Every difference is B less A."""

from typing import Literal

import msgspec

from slipstream.model.diagnosis import FORMAT_VERSION, Integrity, Source

Verdict = Literal["faster", "slower", "no_difference_shown", "cannot_tell"]
MatchedBy = Literal["module_op_shape", "op_shape", "op", "kernel"]
Basis = Literal["marks", "inferred", "recording"]


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A difference with its interval. Of one line among many: one in twenty without a change is marked all the same."""

    difference_ns: int
    low_ns: int | None
    """Interval of the difference; null where it cannot be told."""
    high_ns: int | None
    confidence: float
    """Probability that the interval holds the true difference, 0..1."""
    verdict: Verdict
    """``faster``: B takes less time."""
    reason: str | None = None
    """Why the verdict is ``cannot_tell``."""
    smallest_detectable_ns: int | None
    """Least difference that these steps would have shown; null where it cannot be told."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two recordings and its steps."""

    source: Source
    integrity: Integrity
    basis: Basis
    """What steps are: marked ones, ones inferred from repetition, or the whole recording as one."""
    steps: int
    median_ns: int
    low_ns: int | None
    """Interval of the median; null with one step."""
    high_ns: int | None
    mean_ns: int
    least_ns: int
    most_ns: int
    work_of: Literal["device", "main_thread"]
    """Whose time the parts are."""


class PartDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the step; the parts add up to the medians and to their difference."""

    part: str
    a_ns: int
    b_ns: int
    effect: Effect


class LineDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one op that are alike: the same shapes and, where modules are recorded, the same module."""

    shapes: str | None
    """Shapes of the inputs as JSON; null: not recorded, or they differ between A and B."""
    module: str | None
    """Path of modules; null: not recorded in both."""
    matched_by: MatchedBy
    only_in: Literal["a", "b"] | None
    a_ns: int
    b_ns: int
    a_count: float
    b_count: float
    a_kernel: str | None
    b_kernel: str | None
    effect: Effect


class OpDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One op's share of a part; the ops of a part add up to it, and the lines of an op to the op.

    Time is exclusive: where work overlaps, what began first has the time.
    """

    part: str
    op: str | None
    """Null: no op is known; then it goes by the name of the kernel."""
    only_in: Literal["a", "b"] | None
    a_ns: int
    b_ns: int
    a_count: float
    """Kernels and copies (on the main thread: ops) per step."""
    b_count: float
    a_kernel: str | None
    """The one that takes most time; null: none, or the main thread is what counts."""
    b_kernel: str | None
    effect: Effect
    lines: tuple[LineDifference, ...]
    """Greatest difference first; at least one."""


class OpAlone(msgspec.Struct, frozen=True, kw_only=True):
    """An op of one recording whose name does not occur in the other, whether it launched work or not."""

    name: str
    count: int
    """Calls in the whole recording."""
    host_self_ns: int
    """Time on the host, less that of the ops inside."""


class Difference(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="diff"):
    """The whole comparison of two recordings."""

    format_version: int = FORMAT_VERSION
    a: Compared
    b: Compared
    step: Effect
    """Of the medians of the steps."""
    parts: tuple[PartDifference, ...]
    """Empty where one recording does not tell what its time went to; ``notes`` say why."""
    ops: tuple[OpDifference, ...]
    """Greatest difference first."""
    only_in_a: tuple[OpAlone, ...]
    """Most time first."""
    only_in_b: tuple[OpAlone, ...]
    notes: tuple[str, ...]
    """What limits the comparison, in sentences."""
