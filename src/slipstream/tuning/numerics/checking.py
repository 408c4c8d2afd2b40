"""Runs a job a few times with its arithmetic watched, and compares."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from slipstream.capture.job import JobSpec
from slipstream.tuning.child import Child
from slipstream.tuning.environment import Environment
from slipstream.tuning.numerics import observing
from slipstream.tuning.numerics.comparing import Compared, compare_runs
from slipstream.tuning.numerics.observation import FILE, OBSERVED, Observed, Watch
from slipstream.tuning.registry import treatment_of
from slipstream.tuning.trials.plan import Arm

STEPS = 30
PERTURBATIONS = 3
_AGAIN = 1
_TOGETHER = 4
SIZE = 1e-7
"""Relative change of the weights: the last digit of float32."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What the numerics of one arm came to."""

    arm: str
    compared: Compared
    dropout: bool
    """False: compared with nothing dropped, since the arm's treatments make other random numbers fall."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is to compute the same as another."""

    name: str
    job: JobSpec
    dropout: bool = True
    """False: compare with nothing dropped."""


def check(
    job: JobSpec,
    arms: Sequence[Arm],
    folder: Path,
    environment: Environment,
    tell: Callable[[str], None] = lambda now: None,
    steps: int = STEPS,
) -> tuple[Checked, ...]:
    """Compare what arms compute with what the job computes as it is: same seed, same data.

    An arm whose treatments make other random numbers fall is compared with nothing dropped.

    Args:
        job: what is run.
        arms: its variants.
        folder: emptied first.
        environment: see ``Child``.
        tell: told, in a few words, what goes on.
        steps: optimizer steps that are watched.
    Raises:
        BadInput: there is no such treatment.
        OSError: the folder cannot be written.
    """
    variants = [
        Variant(
            name=arm.name,
            job=msgspec.structs.replace(job, treatments=(*job.treatments, *arm.treatments)),
            dropout=not any(treatment_of(choice).changes_random_stream for choice in arm.treatments),
        )
        for arm in arms
    ]
    return check_variants(job, variants, folder, environment, tell, steps)


def check_variants(
    job: JobSpec,
    variants: Sequence[Variant],
    folder: Path,
    environment: Environment,
    tell: Callable[[str], None] = lambda now: None,
    steps: int = STEPS,
    timeout_s: float = 1800.0,
) -> tuple[Checked, ...]:
    """Compare what any variants of a job compute with what it computes; see ``check``.

    Args:
        job: what the others are held against.
        variants: with treatments, or with other arguments.
        folder: emptied first.
        environment: see ``Child``.
        tell: told, in a few words, what goes on.
        steps: optimizer steps that are watched.
        timeout_s: for each process.
    """
    shutil.rmtree(folder, ignore_errors=True)
    wanted: dict[str, tuple[JobSpec, Watch]] = {}
    for dropout in sorted({variant.dropout for variant in variants}):
        for number in range(PERTURBATIONS + 2):
            size = SIZE if number > _AGAIN else 0.0
            watch = Watch(seed=0, steps=steps, dropout=dropout, perturbation=size, perturbation_seed=number)
            wanted[_reference(dropout, number)] = (job, watch)
    for variant in variants:
        wanted[variant.name] = (variant.job, Watch(seed=0, steps=steps, dropout=variant.dropout))

    def run(name: str) -> Observed | str:
        tell(f"numerics: {name}")
        return _observed(*wanted[name], folder / name.replace(" ", "-").replace("/", "-"), environment, timeout_s)

    # Nothing is timed here: on a CPU several run at the same time, with as many threads as there are cores for.
    together = max(1, min(environment.cores_allowed, _TOGETHER)) if environment.device_kind == "cpu" else 1
    if together > 1:
        threads = {"OMP_NUM_THREADS": str(environment.cores_allowed // together)}
        environment = msgspec.structs.replace(environment, variables=threads | environment.variables)
    with ThreadPoolExecutor(max_workers=together) as pool:
        seen = dict(zip(wanted, pool.map(run, wanted), strict=True))
    return tuple(
        Checked(
            arm=variant.name,
            compared=_compared(
                seen[variant.name],
                [seen[_reference(variant.dropout, number)] for number in range(PERTURBATIONS + 2)],
            ),
            dropout=variant.dropout,
        )
        for variant in variants
    )


def _reference(dropout: bool, number: int) -> str:
    """Name of a run of the job as it is: 0 the base, 1 once more, further ones with weights changed a little."""
    what = "as it is" if number == 0 else "once more" if number == _AGAIN else f"last digits changed {number - _AGAIN}"
    return what if dropout else f"{what}, nothing dropped"


def _compared(run: Observed | str, references: Sequence[Observed | str]) -> Compared:
    """A run against the job as it is; a failure of either is no answer."""
    for one in references:
        if isinstance(one, str):
            return Compared(sameness="cannot_tell", reasons=(f"the job as it is: {one}",), steps=0)
    if isinstance(run, str):
        return Compared(sameness="cannot_tell", reasons=(run,), steps=0)
    base, *others = (one for one in references if not isinstance(one, str))
    return compare_runs(base, run, others)


def _observed(job: JobSpec, watch: Watch, folder: Path, environment: Environment, timeout_s: float) -> Observed | str:
    """What a process computed, or why nothing is known of it."""
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(msgspec.json.encode(watch))
    child = Child(job, folder, (observing.PART,), environment)
    try:
        status = child.wait(timeout_s)
        if status is None:
            return f"it did not end {watch.steps} steps within {timeout_s:.0f} s"
        if status:
            return f"it ended with status {status}:\n{child.last_words()}"
    finally:
        child.end()
    file = folder / OBSERVED
    if not file.exists():
        return "it ended without a step of an optimizer"
    return msgspec.json.decode(file.read_bytes(), type=Observed)
