"""What a measurement found: of every process, what it took turn by turn, or why it did not."""

from typing import Literal

import msgspec

from slipstream.tuning.applying import Proved
from slipstream.tuning.trials.plan import Mode, Plan

ENOUGH_TURNS = 5
"""Turns of a process from which a median is taken."""

Outcome = Literal["measured", "failed", "hung", "too_few_steps", "no_steps"]


class Warmup(msgspec.Struct, frozen=True, kw_only=True):
    """A process until the end of its warm-up."""

    wall_ns: int
    """From its start to its last step of the warm-up."""
    step_ns: tuple[int, ...]
    """Between the ends of its first steps: one less than there were."""
    resident_bytes: int
    """Memory of the process and its workers at the end of it."""
    device_bytes: int | None = None
    """Memory reserved on the device; None: no device."""
    device_free_bytes: int | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a process did between getting the turn and handing it on."""

    wall_ns: int
    """Of its steps, without the time that the hooks took; the device has finished them."""
    cpu_ns: int
    """Processor time of the process, all its threads, without workers."""
    steps: int
    samples: int | None
    """Rows of the batches that these steps learned from; None: not known of each."""
    foreign_cores: float | None = None
    """Cores that others used meanwhile (over half a second or more); None: not looked."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """One process of one arm."""

    arm: str
    repetition: int
    outcome: Outcome
    reason: str | None = None
    """Why it was not measured to the end."""
    exit_status: int | None = None
    """Of a process that ended by itself."""
    warmup: Warmup | None = None
    """None: it did not get through it."""
    turns: tuple[Turn, ...] = ()
    proofs: tuple[Proved, ...] = ()
    """As at the end, else as after the warm-up."""


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """One process of every arm, measured together."""

    number: int
    seed: int
    mode: Mode
    mode_reason: str
    processes: tuple[ProcessResult, ...]

    def of(self, arm: str) -> ProcessResult | None:
        """The process of an arm, None where it was left out."""
        return next((process for process in self.processes if process.arm == arm), None)


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """All repetitions of a plan."""

    plan: Plan
    cores_allowed: int
    repetitions: tuple[Repetition, ...]
    left_out: dict[str, str] = {}
    """Arms that were not gone on with, and why."""
