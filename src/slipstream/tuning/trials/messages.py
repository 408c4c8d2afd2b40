"""What a job's process and the launcher of its trial tell each other, one JSON record per line."""

import msgspec

from slipstream.tuning.applying import Proved
from slipstream.tuning.trials.results import Turn


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the process reads at its start (``trial.json`` in its folder)."""

    seed: int
    warmup_steps: int
    reports: str
    """Named pipe that the process writes to."""
    orders: str
    """Named pipe that it reads from."""


class Warm(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The warm-up is over; the process waits for its first turn."""

    at_ns: int
    """When it was over, on the monotonic clock that all processes share."""
    step_ns: tuple[int, ...]
    proofs: tuple[Proved, ...]
    device_bytes: int | None
    device_free_bytes: int | None


class Done(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A turn is over; the process waits for the next one."""

    turn: Turn


class Over(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The process ends."""

    steps: int
    proofs: tuple[Proved, ...]


class Go(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The process has the turn."""

    steps: int


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Nothing more is wanted of the process."""


Report = Warm | Done | Over
Order = Go | Stop
