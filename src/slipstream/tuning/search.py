"""The search: what may help is ordered, screened, checked for sameness and confirmed in fresh processes."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from slipstream.capture.job import Choice, JobSpec
from slipstream.model import BadInput, Gain, Measured, Numerics, Stage, Tried, Tuning, Verdict
from slipstream.stats import MOST_KEPT, PairedEffect, screen
from slipstream.tuning.environment import Environment
from slipstream.tuning.numerics.checking import SEEDS, STEPS, Checked, check
from slipstream.tuning.numerics.seeds import LEAST_SEEDS
from slipstream.tuning.proving import Proven, log_ratios, prove, without_effect
from slipstream.tuning.registry import all_treatments, treatment_of
from slipstream.tuning.trials.measuring import measure
from slipstream.tuning.trials.plan import Arm, Plan, Protocol
from slipstream.tuning.trials.results import Measurement

COMBINATION = "combination"
SCREENING = Protocol(repetitions=2, rounds=12)


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured."""

    screening: Protocol = SCREENING
    confirmation: Protocol = Protocol()
    numerics_steps: int = STEPS
    seeds: int = SEEDS
    seconds: float | None = None
    """After this time no further repetition is begun; what lacks pairs then cannot be told."""


def short_effort(seconds: float | None = None) -> Effort:
    """As many processes as a verdict needs, with few steps in each.

    Args:
        seconds: after which nothing new is begun.
    """
    quick = Protocol(warmup_steps=4, rounds=8)
    return Effort(
        screening=msgspec.structs.replace(quick, repetitions=2),
        confirmation=quick,
        numerics_steps=15,
        seeds=LEAST_SEEDS,
        seconds=seconds,
    )


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the user allows."""

    only: tuple[Choice, ...] | None = None
    """Treatments to try; None: all that apply."""
    allow_semantic: bool = False
    """Whether treatments may change what is learnt."""


def tune(
    job: JobSpec,
    folder: Path,
    environment: Environment,
    wishes: Wishes,
    effort: Effort,
    gains: Mapping[str, Gain] | None = None,
    tell: Callable[[str], None] = lambda now: None,
) -> tuple[Tuning, tuple[Choice, ...]]:
    """Find treatments that make a job faster and leave what it computes as it is.

    Args:
        job: to be tuned.
        folder: for everything that is measured; made when missing.
        environment: of the machine.
        wishes: what may be tried.
        effort: how much is measured.
        gains: what a recording forecasts for treatments, by name; None: there is no recording.
        tell: told, in a few words, what goes on.
    Returns:
        What was found, and the treatments to keep.
    Raises:
        BadInput: a treatment that does not exist, or none that may be tried.
    """
    deadline = None if effort.seconds is None else time.monotonic() + effort.seconds
    tried, arms = _candidates(environment, wishes, gains)
    if not tried:
        raise BadInput("there is nothing to try")
    search = _Search(job, folder, environment, effort, deadline, tried, tell)
    if len(arms) > MOST_KEPT:
        arms = search.screened(arms)
    sound = search.sound(arms)
    noise, disturbed, rounds = None, 0, 0
    if sound:
        verdicts = prove(search.measured("confirmation", sound, effort.confirmation, tell))
        for proven in verdicts.arms:
            tried[proven.arm] = msgspec.structs.replace(
                tried[proven.arm], measured=_measured(proven), evidence=proven.evidence
            )
        disturbed, rounds = verdicts.disturbed_rounds, verdicts.rounds
        noise = _gain_of(verdicts.noise, verdicts.noise_unit, None, verdicts.noise.verdict, verdicts.noise_notes)
    kept = _kept(tried)
    protocol = effort.confirmation
    result = Tuning(
        command=(*(("-m",) if job.is_module else ()), job.target, *job.argv),
        protocol=(
            f"{protocol.repetitions} fresh processes of each, {protocol.rounds} turns in each after "
            f"{protocol.warmup_steps} steps of warm-up"
        ),
        noise=noise,
        disturbed_rounds=disturbed,
        rounds=rounds,
        tried=tuple(sorted(tried.values(), key=_place)),
        kept=kept,
    )
    choices = next((arm.treatments for arm in sound if arm.name == kept), ())
    return result, choices


def _candidates(
    environment: Environment, wishes: Wishes, gains: Mapping[str, Gain] | None
) -> tuple[dict[str, Tried], list[Arm]]:
    """Everything that is asked for, and of it what is worth a try, most promising first."""
    choices = wishes.only if wishes.only is not None else tuple(Choice(name=name) for name in all_treatments())
    tried: dict[str, Tried] = {}
    arms: list[Arm] = []
    for choice in choices:
        arm = Arm(name=str(choice), treatments=(choice,))
        one = _tried(arm)
        if gains is not None and choice.name in gains:
            one = msgspec.structs.replace(one, forecast=gains[choice.name])
        else:
            why = "no recording" if gains is None else "the recording forecasts no gain"
            one = msgspec.structs.replace(one, forecast_reason=why)
        unfit = treatment_of(choice).applies_to(environment)
        if unfit is not None:
            one = _ended(one, "not_applicable", unfit)
        elif one.fix_class == "semantic" and not wishes.allow_semantic:
            one = _ended(one, "needs_consent", "it changes what is learnt: --allow-semantic lets it be tried")
        else:
            arms.append(arm)
        tried[arm.name] = one
    arms.sort(key=lambda arm: -_expected(tried[arm.name]))
    return tried, arms


class _Search:
    """A search that is under way; ``tried`` is told of every treatment how far it came."""

    def __init__(
        self,
        job: JobSpec,
        folder: Path,
        environment: Environment,
        effort: Effort,
        deadline: float | None,
        tried: dict[str, Tried],
        tell: Callable[[str], None],
    ) -> None:
        self._job = job
        self._folder = folder
        self._environment = environment
        self._effort = effort
        self._deadline = deadline
        self._tried = tried
        self._tell = tell

    def measured(self, name: str, arms: Sequence[Arm], protocol: Protocol, tell: Callable[[str], None]) -> Measurement:
        """Arms, measured into a folder of that name."""
        plan = Plan(job=self._job, arms=tuple(arms), protocol=protocol)
        return measure(plan, self._folder / name, self._environment, tell, self._deadline)

    def screened(self, arms: Sequence[Arm]) -> list[Arm]:
        """Arms that go on to the confirmation."""
        measurement = self.measured(
            "screening", arms, self._effort.screening, lambda now: self._tell(f"screening, {now}")
        )
        void = without_effect(measurement)
        screened = screen({name: [] if name in void else values for name, values in log_ratios(measurement).items()})
        for name, why in (screened.dropped | void).items():
            self._tried[name] = _ended(self._tried[name], "screened_out", measurement.left_out.get(name, why))
        return [arm for name in screened.kept for arm in arms if arm.name == name]

    def sound(self, arms: Sequence[Arm]) -> list[Arm]:
        """Arms, with the combination of them, that compute the same."""
        if not arms:
            return []
        found = self._same(arms, "numerics")
        left = [arm for arm in arms if arm.name in found]
        if len(left) < len(arms):  # the combination was one with others
            found.discard(COMBINATION)
            self._tried.pop(COMBINATION, None)
            if len(left) > 1:
                found |= self._same(left, "numerics-again")
        return [*left, _combination(left)] if len(left) > 1 and COMBINATION in found else left

    def _same(self, arms: Sequence[Arm], name: str) -> set[str]:
        """Names of arms and of their combination that compute the same."""
        several = [*arms, _combination(arms)] if len(arms) > 1 else [*arms]
        answers = check(
            self._job,
            several,
            self._folder / name,
            self._environment,
            self._tell,
            self._effort.numerics_steps,
            self._effort.seeds,
        )
        found = set()
        for arm, checked in zip(several, answers, strict=True):
            before = _tried(arm) if arm.name == COMBINATION else self._tried[arm.name]
            one = msgspec.structs.replace(before, numerics=_numerics(checked))
            if checked.compared.sameness == "same" or one.fix_class == "semantic":
                found.add(arm.name)
            else:
                one = _ended(one, "other_results", checked.compared.reasons[0])
            self._tried[arm.name] = one
        return found


def _combination(arms: Sequence[Arm]) -> Arm:
    return Arm(name=COMBINATION, treatments=tuple(choice for arm in arms for choice in arm.treatments))


def _tried(arm: Arm) -> Tried:
    treatments = [treatment_of(choice) for choice in arm.treatments]
    classes = [treatment.fix_class for treatment in treatments]
    permanent = [treatment.permanent() for treatment in treatments]
    snippets = [
        one.snippet or "\n".join(f"export {name}={value}" for name, value in one.variables.items()) for one in permanent
    ]
    return Tried(
        name=arm.name,
        title=" + ".join(treatment.title for treatment in treatments),
        treatments=tuple(map(str, arm.treatments)),
        fix_class="semantic" if "semantic" in classes else "rounding" if "rounding" in classes else "exact",
        changes_random_stream=any(treatment.changes_random_stream for treatment in treatments),
        stage="confirmed",
        permanent="; ".join(one.summary for one in permanent),
        snippet="\n".join(filter(None, snippets)) or None,
    )


def _ended(one: Tried, stage: Stage, reason: str) -> Tried:
    return msgspec.structs.replace(one, stage=stage, reason=reason)


def _numerics(checked: Checked) -> Numerics:
    compared = checked.compared
    return Numerics(
        sameness=compared.sameness,
        dropout=checked.dropout,
        seeds=checked.seeds,
        steps=compared.steps,
        reasons=compared.reasons,
        notes=compared.notes,
    )


def _measured(proven: Proven) -> Measured:
    found = _gain_of(proven.effect, proven.unit, proven.payback_steps, proven.verdict, proven.notes)
    return msgspec.structs.replace(found, reason=proven.reason)


def _gain_of(
    effect: PairedEffect, unit: str, payback: float | None, verdict: Verdict, notes: Sequence[str]
) -> Measured:
    """Ratios of time become shares saved, which turns their ends around."""

    def saved(ratio: float | None) -> float | None:
        return None if ratio is None else 1 - ratio

    return Measured(
        verdict=verdict,
        reason=effect.reason,
        unit=unit,
        gain=saved(effect.ratio),
        low=saved(effect.high),
        high=saved(effect.low),
        confidence=effect.confidence,
        low_95=saved(effect.high_95),
        high_95=saved(effect.low_95),
        pairs=effect.pairs,
        smallest_detectable=effect.smallest_detectable,
        payback_steps=payback,
        notes=tuple(notes),
    )


def _kept(tried: Mapping[str, Tried]) -> str | None:
    """What is proven faster and computes the same, and saves most."""
    proven = [one for one in tried.values() if one.measured is not None and one.measured.verdict == "faster"]
    best = max(proven, key=_saved, default=None)
    return None if best is None else best.name


def _saved(one: Tried) -> float:
    return one.measured.gain or 0.0 if one.measured is not None else 0.0


def _expected(one: Tried) -> float:
    return one.forecast.expected if one.forecast is not None else 0.0


def _place(one: Tried) -> tuple[int, float, str]:
    """Confirmed ones first, the fastest of them on top."""
    stages = ("confirmed", "other_results", "screened_out", "needs_consent", "not_applicable")
    return stages.index(one.stage), -_saved(one), one.name
