"""What is to be measured, and how."""

from typing import Literal

import msgspec

from slipstream.capture.job import Choice, JobSpec

Mode = Literal["interleaved", "alternating"]
BASE, TWIN = "base", "base again"
"""Names of the two identical arms without any treatment under trial."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of the job."""

    name: str
    treatments: tuple[Choice, ...] = ()
    job: JobSpec | None = None
    """Another script or other arguments instead of the plan's job; None: that."""


class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """How a measurement is made. The defaults are those of a confirmation."""

    repetitions: int = 8
    """Fresh processes of every arm."""
    warmup_steps: int = 10
    """First steps of every process that are kept apart."""
    rounds: int = 30
    """Turns that every process has after its warm-up and that are not disturbed."""
    least_turn_ms: float = 20.0
    """Steps that take less share a turn, so that changing over weighs little."""
    steps_per_turn: int | None = None
    """None: as many as ``least_turn_ms`` asks for, the same in all arms."""
    mode: Mode | None = None
    """``interleaved``: all arms at the same time, each held in its step hook until it has the turn; ``alternating``:
    one after the other. None: interleaved where memory allows."""
    seed: int = 0
    """Of python, numpy and torch, in every arm alike; repetitions count up from it."""
    most_foreign_load: float | None = 0.1
    """Cores that others use, as a share of those that the job may use, above which a round counts as disturbed;
    None: none is."""
    start_timeout_s: float = 900.0
    """Until the end of the warm-up, compilation included."""
    step_timeout_s: float = 300.0
    """For one turn; beyond it the process counts as hung."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A job and the arms that it is to be measured in."""

    job: JobSpec
    """Its ``treatments`` and ``environment`` are part of every arm, the base included."""
    arms: tuple[Arm, ...]
    """Besides the base and its identical twin, which every measurement has."""
    protocol: Protocol = Protocol()

    def all_arms(self) -> tuple[Arm, ...]:
        """The base, its twin and the others."""
        return (Arm(name=BASE), Arm(name=TWIN), *self.arms)
