"""The published kind ``tuning``: which treatments were tried on a job, and what came of each."""

from typing import Literal

import msgspec

from slipstream.model.diagnosis import FORMAT_VERSION
from slipstream.model.difference import Verdict
from slipstream.model.finding import FixClass, Gain

Stage = Literal["not_applicable", "needs_consent", "screened_out", "other_results", "confirmed"]
SeedsOf = Literal["loss", "gradient norm"]
Sameness = Literal["same", "differs", "cannot_tell"]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Time saved in fresh processes: 0.12 = a step (or sample) takes 12 % less."""

    verdict: Verdict
    reason: str | None = None
    """Why the verdict is ``cannot_tell``."""
    unit: str
    """``sample`` or ``step``."""
    gain: float | None
    low: float | None
    """Interval that the verdict rests on, at ``confidence``."""
    high: float | None
    confidence: float | None
    low_95: float | None
    high_95: float | None
    pairs: int
    smallest_detectable: float | None
    """Gain that would have been found with probability 0.8."""
    payback_steps: float | None
    """Steps after which a longer start has paid; null: never, or not known."""
    notes: tuple[str, ...] = ()


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over the steps, seed by seed, with random numbers at work, against that of the job as it is."""

    of: SeedsOf
    verdict: Literal["differs", "no_difference_shown", "cannot_tell"]
    reason: str | None = None
    """Why the verdict is ``cannot_tell``."""
    seeds: int
    difference: float | None
    """Mean over the seeds, as a share of the job's own: 0.01 = 1 % larger."""
    low_95: float | None
    high_95: float | None


class Numerics(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the job still computes the same."""

    sameness: Sameness
    dropout: bool
    """False: compared with nothing dropped, since other random numbers fall."""
    steps: int
    """Backward passes that were compared closely."""
    seeds: tuple[Seeds, ...] = ()
    """Empty: other random numbers do not fall, or none play a part."""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One treatment, or a combination."""

    name: str
    title: str
    treatments: tuple[str, ...]
    fix_class: FixClass
    changes_random_stream: bool
    stage: Stage
    """How far it came."""
    reason: str | None = None
    """Why not further."""
    forecast: Gain | None = None
    forecast_reason: str | None = None
    numerics: Numerics | None = None
    measured: Measured | None = None
    evidence: tuple[str, ...] = ()
    """What showed that it took effect."""
    permanent: str | None = None
    """How to have its effect without slipstream."""
    snippet: str | None = None


class Tuning(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="tuning"):
    """The whole answer of ``slipstream tune``."""

    format_version: int = FORMAT_VERSION
    command: tuple[str, ...]
    protocol: str
    """How it was measured, in a sentence."""
    noise: Measured | None
    """Two identical copies of the job against each other."""
    disturbed_rounds: int
    rounds: int
    tried: tuple[Tried, ...]
    kept: str | None
    """Name of what is proven faster and computes the same; null: nothing is."""
