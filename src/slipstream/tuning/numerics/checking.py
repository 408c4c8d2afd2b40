"""Runs a job a few times with its arithmetic watched, and compares."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from slipstream.capture.job import JobSpec
from slipstream.model import Seeds
from slipstream.tuning.child import Child
from slipstream.tuning.environment import Environment
from slipstream.tuning.numerics import observing
from slipstream.tuning.numerics.comparing import Compared, compare_runs
from slipstream.tuning.numerics.observation import FILE, OBSERVED, Observed, Watch
from slipstream.tuning.numerics.seeds import compare_over_seeds
from slipstream.tuning.registry import treatment_of
from slipstream.tuning.trials.plan import Arm

STEPS = 30
SEEDS = 5
PERTURBATIONS = 3
_AGAIN = 1
_TOGETHER = 4
_AS_IT_IS = "as it is"
SIZE = 1e-7
"""Relative change of the weights: the last digit of float32."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What the numerics of one arm came to."""

    arm: str
    compared: Compared
    dropout: bool
    """False: compared with nothing dropped, since the arm's treatments make other random numbers fall."""
    seeds: tuple[Seeds, ...] = ()
    """Of an arm that is the same with nothing dropped: several seeds, with dropout. Empty: not asked, or the job
    drops nothing."""


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
    seeds: int = SEEDS,
) -> tuple[Checked, ...]:
    """Compare what arms compute with what the job computes as it is: same seed, same data.

    An arm whose treatments make other random numbers fall is compared with nothing dropped; where it is the same,
    its losses over several seeds are compared, too, with dropout as the job has it.

    Args:
        job: what is run.
        arms: its variants.
        folder: emptied first.
        environment: see ``Child``.
        tell: told, in a few words, what goes on.
        steps: optimizer steps that are watched.
        seeds: how many are compared.
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
    return check_variants(job, variants, folder, environment, tell, steps, seeds)


def check_variants(
    job: JobSpec,
    variants: Sequence[Variant],
    folder: Path,
    environment: Environment,
    tell: Callable[[str], None] = lambda now: None,
    steps: int = STEPS,
    seeds: int = SEEDS,
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
        seeds: how many are compared where a variant says ``dropout=False``.
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
        compared = {
            variant.name: _compared(
                seen[variant.name],
                [seen[_reference(variant.dropout, number)] for number in range(PERTURBATIONS + 2)],
            )
            for variant in variants
        }
        flagged = [one for one in variants if not one.dropout and compared[one.name].sameness == "same"]
        wanted = {
            _seeded(one.name, seed): (one.job, Watch(seed=seed, steps=steps))
            for one in (Variant(name=_AS_IT_IS, job=job), *flagged)
            for seed in range(seeds)
            if flagged
        }
        seen |= dict(zip(wanted, pool.map(run, wanted), strict=True))
    found = []
    for variant in variants:
        checked = Checked(arm=variant.name, compared=compared[variant.name], dropout=variant.dropout)
        if variant in flagged and not _drops_nothing(seen[_seeded(_AS_IT_IS, 0)], seen[_reference(False, 0)]):
            bases, runs = ([seen[_seeded(name, seed)] for seed in range(seeds)] for name in (_AS_IT_IS, variant.name))
            checked = _with_seeds(checked, compare_over_seeds(bases, runs))
        found.append(checked)
    return tuple(found)


def _with_seeds(checked: Checked, seeds: tuple[Seeds, ...]) -> Checked:
    """What seeds show counts as what the single runs show."""
    reasons = tuple(
        f"over {one.seeds} seeds the mean {one.of} is {one.difference * 100:+.2g} % off"
        for one in seeds
        if one.verdict == "differs" and one.difference is not None
    )
    compared = checked.compared
    if reasons:
        compared = msgspec.structs.replace(compared, sameness="differs", reasons=reasons)
    return msgspec.structs.replace(checked, compared=compared, seeds=seeds)


def _drops_nothing(one: Observed | str, other: Observed | str) -> bool:
    """Whether a run with dropout and one without are the same to the last bit."""
    return not isinstance(one, str) and not isinstance(other, str) and one.losses == other.losses


def _seeded(name: str, seed: int) -> str:
    return f"{name}, seed {seed}"


def _reference(dropout: bool, number: int) -> str:
    """Name of a run of the job as it is: 0 the base, 1 once more, further ones with weights changed a little."""
    what = _AS_IT_IS if number == 0 else "once more" if number == _AGAIN else f"last digits changed {number - _AGAIN}"
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
