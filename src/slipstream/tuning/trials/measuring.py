"""A plan, carried out: repetition by repetition, each kept on disk so that an interrupted measurement goes on."""

import shutil
import time
from pathlib import Path

import msgspec

from slipstream.model import BadInput
from slipstream.tuning.environment import Environment
from slipstream.tuning.trials.plan import BASE, Plan
from slipstream.tuning.trials.repetition import Tell, repeat
from slipstream.tuning.trials.results import ENOUGH_TURNS, Measurement, Repetition

_PLAN = "plan.json"


def measure(
    plan: Plan,
    folder: Path,
    environment: Environment,
    tell: Tell = lambda now: None,
    deadline: float | None = None,
) -> Measurement:
    """Measure all arms of a plan against its base.

    A process that fails, hangs, has too few steps or shows no effect of a treatment is a result. Its arm is not gone on
    with; without the base nothing is.

    Args:
        plan: job, arms and protocol.
        folder: made when missing. What a measurement of the same plan left there is used again.
        environment: what the treatments' variables are computed from; also the variables that the job inherits.
        tell: told, in a few words, what goes on.
        deadline: on the clock of ``time.monotonic``; a repetition that would not end before is not begun.
    Raises:
        BadInput: the folder holds another measurement, an arm is named twice, or there is no such treatment.
        OSError: the folder cannot be written.
    """
    names = [arm.name for arm in plan.all_arms()]
    if len(set(names)) < len(names):
        raise BadInput(f"arms need names of their own: {', '.join(names)}")
    folder.mkdir(parents=True, exist_ok=True)
    _take_over(folder / _PLAN, plan)
    repetitions: list[Repetition] = []
    left_out: dict[str, str] = {}
    longest = 0.0
    for number in range(plan.protocol.repetitions):
        arms = [arm for arm in plan.all_arms() if arm.name not in left_out]
        file = folder / f"repetition-{number:02d}.json"
        if file.exists():
            repetition = msgspec.json.decode(file.read_bytes(), type=Repetition)
        else:
            place = file.with_suffix("")
            if deadline is not None and time.monotonic() + longest > deadline and repetitions:
                break
            began = time.monotonic()
            shutil.rmtree(place, ignore_errors=True)  # of an interrupted one
            mode = plan.protocol.mode or (repetitions[0].mode if repetitions else None)
            said = f"repetition {number + 1} of {plan.protocol.repetitions}"

            def tell_more(now: str, said: str = said) -> None:
                tell(f"{said}: {now}")

            repetition = repeat(plan, arms, number, place, environment, mode, tell_more)
            part = file.with_name(file.name + ".part")
            part.write_bytes(msgspec.json.encode(repetition))
            part.replace(file)
            longest = max(longest, time.monotonic() - began)
        repetitions.append(repetition)
        for process in repetition.processes:
            if process.outcome == "too_few_steps" and len(process.turns) < ENOUGH_TURNS:
                had = f"{len(process.turns)} turns of its steps were measured, and {ENOUGH_TURNS} are needed"
                left_out[process.arm] = f"{process.reason}: {had}"
            elif process.outcome not in ("measured", "too_few_steps"):
                left_out[process.arm] = process.reason or process.outcome
            else:
                missing = next((one for one in process.proofs if not one.proof.applied), None)
                if missing is not None:  # without it there is no verdict, however long it is measured
                    left_out[process.arm] = f"it did not take effect: {missing.choice}: {missing.proof.evidence}"
        if BASE in left_out:
            break
    return Measurement(
        plan=plan,
        cores_allowed=environment.cores_allowed,
        repetitions=tuple(repetitions),
        left_out=left_out,
    )


def _take_over(file: Path, plan: Plan) -> None:
    text = msgspec.json.encode(plan)
    if not file.exists():
        file.write_bytes(text)
    elif file.read_bytes() != text:
        raise BadInput(f"{file.parent} holds another measurement: name another folder, or remove it")
