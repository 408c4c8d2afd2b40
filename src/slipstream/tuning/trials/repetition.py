"""One repetition: a fresh process of every arm, taking turns step by step, or one after the other."""

import math
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from slipstream.capture.foreign_load import ForeignLoad, available_bytes
from slipstream.tuning.environment import Environment
from slipstream.tuning.trials.plan import BASE, Arm, Mode, Plan
from slipstream.tuning.trials.results import ProcessResult, Repetition, Turn, Warmup
from slipstream.tuning.trials.seat import Seat

_LOOK_S = 0.5
"""Spans below this tell little of the load by others."""
_MORE_ROUNDS = 2
"""Times as many rounds are tried as are wanted, where some are disturbed."""
_SPARE = 0.8
"""Share of free memory that a trial may take."""

Tell = Callable[[str], None]


def repeat(
    plan: Plan,
    arms: Sequence[Arm],
    number: int,
    folder: Path,
    environment: Environment,
    mode: Mode | None,
    tell: Tell,
) -> Repetition:
    """Measure one fresh process of every arm.

    Args:
        plan: job and protocol.
        arms: those that are still measured, the base among them.
        number: of this repetition, from 0; seed and order depend on it.
        folder: made anew; one folder below it per process.
        environment: see ``Child``.
        mode: None: interleaved where memory allows.
        tell: told what goes on.
    """
    protocol = plan.protocol
    seed = protocol.seed + number
    chance = random.Random(seed)
    order = [*arms]
    chance.shuffle(order)
    order.sort(key=lambda arm: arm.name != BASE)  # it says how much memory the others need
    seats: list[Seat] = []
    closed: list[ProcessResult] = []

    def seated(arm: Arm) -> Seat:
        own = arm.job or plan.job
        job = msgspec.structs.replace(own, treatments=(*own.treatments, *arm.treatments))
        place = folder / arm.name.replace(" ", "-").replace("/", "-")
        return Seat(arm.name, number, job, place, environment, protocol, seed)

    reason = "asked for"
    try:
        tell(f"{BASE}: starts and warms up")
        seats.append(seated(order[0]))
        warmup = seats[0].warm_up()
        if mode is None:
            mode, reason = _mode(warmup, len(order))
        if warmup is not None and mode == "interleaved":
            for arm in order[1:]:  # one by one: threads of two jobs that spin for each other take ten times as long
                tell(f"{arm.name}: starts and warms up")
                seats.append(seated(arm))
                seats[-1].warm_up()
            _rounds(seats, plan, chance, environment.cores_allowed, tell)
        elif warmup is not None:
            _rounds(seats, plan, chance, environment.cores_allowed, tell)
            closed.append(seats.pop().dismiss())
            for arm in order[1:]:
                tell(f"{arm.name}: starts and warms up")
                seats.append(seated(arm))
                if seats[0].warm_up() is not None:
                    _rounds(seats, plan, chance, environment.cores_allowed, tell)
                closed.append(seats.pop().dismiss())
        while seats:
            closed.append(seats[0].dismiss())
            del seats[0]
    finally:
        for seat in seats:
            seat.abandon()
    return Repetition(number=number, seed=seed, mode=mode or "interleaved", mode_reason=reason, processes=tuple(closed))


def _mode(warmup: Warmup | None, processes: int) -> tuple[Mode, str]:
    """Interleaved where all processes fit into memory at the same time, by what the base needs."""
    if warmup is None:
        return "alternating", "the base did not get through its warm-up"
    more = processes - 1
    free = available_bytes()
    if warmup.resident_bytes * more > _SPARE * free:
        return "alternating", (
            f"{more} more processes of {warmup.resident_bytes / 1e9:.1f} GB do not fit into {free / 1e9:.1f} GB of "
            "free memory"
        )
    if warmup.device_bytes is not None and warmup.device_free_bytes is not None:
        device_free = warmup.device_free_bytes
        if warmup.device_bytes * more > _SPARE * device_free:
            return "alternating", (
                f"{more} more processes of {warmup.device_bytes / 1e9:.1f} GB do not fit into "
                f"{device_free / 1e9:.1f} GB of free device memory"
            )
    return "interleaved", "all processes fit into memory"


def _rounds(seats: Sequence[Seat], plan: Plan, chance: random.Random, cores: int, tell: Tell) -> None:
    """Turns in a new order every round, until enough rounds were not disturbed or the base has left."""
    protocol = plan.protocol
    steps = protocol.steps_per_turn or _steps_per_turn(seats, protocol.least_turn_ms)
    most = None if protocol.most_foreign_load is None else protocol.most_foreign_load * cores
    load, looked = ForeignLoad(), time.monotonic()
    calm = 0
    block: list[list[tuple[Seat, Turn]]] = []
    for done in range(_MORE_ROUNDS * protocol.rounds):
        running = [seat for seat in seats if seat.runs]
        if not running:
            break
        tell(f"round {done + 1}, {calm} of {protocol.rounds} measured")
        chance.shuffle(running)
        taken = []
        for seat in running:
            turn = seat.take_turn(steps)
            if turn is not None:
                taken.append((seat, turn))
        block.append(taken)
        if most is None:
            calm += _note(block, None, None)
            block = []
        elif time.monotonic() - looked >= _LOOK_S:
            calm += _note(block, load.cores(), most)
            block, looked = [], time.monotonic()
        if calm >= protocol.rounds:
            return
        if any(not seat.runs for seat in seats if seat.arm == BASE):
            break
    _note(block, load.cores() if time.monotonic() - looked >= _LOOK_S else None, most)


def _note(block: Sequence[Sequence[tuple[Seat, Turn]]], foreign: float | None, most: float | None) -> int:
    """Write down turns with the load by others during them; how many rounds were not disturbed."""
    for taken in block:
        for seat, turn in taken:
            seat.turns.append(msgspec.structs.replace(turn, foreign_cores=foreign))
    return len(block) if most is None or foreign is None or foreign <= most else 0


def _steps_per_turn(seats: Sequence[Seat], least_ms: float) -> int:
    lengths = [seat.step_ns for seat in seats if seat.runs and seat.step_ns]
    return max(1, math.ceil(least_ms * 1e6 / min(lengths))) if lengths else 1
