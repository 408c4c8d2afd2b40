"""What a rule says: a finding with its cost, place, evidence and fix - or a reason for silence."""

from typing import Literal

import msgspec

FixClass = Literal["exact", "rounding", "semantic"]


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the user's code."""

    file: str
    line: int
    function: str
    precision: Literal["statement", "function"]
    """``statement``: ``line`` is where it happens; ``function``: ``line`` is that of the ``def``."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the recording that shows the problem."""

    event: str
    ts_ns: int
    dur_ns: int
    note: str = ""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about a finding."""

    summary: str
    snippet: str | None = None
    """Code, ready to copy."""
    treatment: str | None = None
    """Name of the tuning treatment that applies it from outside, or null."""
    needs_consent: bool = False
    """True exactly for the semantic class: the training would learn something else."""


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """Share of time a fix would save: 0.12 = the step (or sample) takes 12 % less."""

    low: float
    expected: float
    high: float
    unit: Literal["step_time", "sample_time"]
    basis: str
    assumptions: tuple[str, ...] = ()
    ceiling: bool = False
    replay_error: float | None = None
    memory_risk: str | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A bottleneck that was found. Rules leave ``id``, ``gain`` and ``fix`` to the diagnosis."""

    id: str = ""
    code: str
    title: str
    fix_class: FixClass
    changes_random_stream: bool = False
    cost_ns: int
    cost_ns_per_step: int | None
    gain: Gain | None = None
    gain_reason: str | None = None
    """Why ``gain`` is null."""
    location: Location | None = None
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None


class Dismissal(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that looked and stayed quiet, or could not look, with the reason."""

    code: str
    reason: str
