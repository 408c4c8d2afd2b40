"""From a measurement to verdicts: pairs of processes, noise floor, drift, and proof that treatments applied."""

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from slipstream.model import Verdict
from slipstream.stats import ALPHA, PairedEffect, drift_within, drifts_across, judge, verdict_of
from slipstream.tuning.trials.plan import BASE, TWIN
from slipstream.tuning.trials.results import ENOUGH_TURNS, Measurement, ProcessResult, Repetition, Turn


class Proven(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement says of one arm against the base. Ratios are times: 0.9 takes 10 % less."""

    arm: str
    verdict: Verdict
    reason: str | None
    """Why it is ``cannot_tell``."""
    unit: str
    """``sample``: wall time per sample was compared; ``step``: batches did not tell their samples."""
    effect: PairedEffect
    """Of the log ratios of the processes' medians; widened where identical copies differ."""
    ratio_of_sums: float | None
    """Of all time, rare slow steps included; None: no pair."""
    payback_steps: float | None
    """Steps after which a longer warm-up (compilation) has paid; 0: it was not longer; None: it never does."""
    evidence: tuple[str, ...] = ()
    """What showed in its processes that the treatments took effect."""
    notes: tuple[str, ...] = ()


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement says."""

    arms: tuple[Proven, ...]
    noise: PairedEffect
    """The base against its identical twin."""
    noise_unit: str
    """As ``Proven.unit``."""
    noise_notes: tuple[str, ...] = ()
    disturbed_rounds: int
    rounds: int
    alpha: float


def prove(measurement: Measurement, alpha: float = ALPHA) -> Verdicts:
    """Judge every arm of a measurement.

    No verdict without a proof of every treatment in every process. Where identical copies differ, all intervals are
    widened by as much; where a ratio drifts by more than it differs, it cannot be told.

    Args:
        measurement: of fresh processes.
        alpha: probability of any wrong verdict among all arms.
    """
    arms = [arm.name for arm in measurement.plan.arms]
    most = measurement.plan.protocol.most_foreign_load
    limit = None if most is None else most * measurement.cores_allowed
    units = {name: _unit(measurement, name) for name in (*arms, TWIN)}
    pairs = {name: _pairs(measurement, name, units[name], limit) for name in (*arms, TWIN)}
    effects = judge({name: [pair.log_ratio for pair in pairs[name]] for name in arms}, alpha)
    noise = judge({TWIN: [pair.log_ratio for pair in pairs[TWIN]]}, alpha)[TWIN]
    bias = abs(math.log(noise.ratio)) if noise.ratio is not None and noise.verdict in ("faster", "slower") else 0.0
    noise_notes = (
        (f"identical copies differ by {bias * 100:.1f} %: every interval is widened by as much",) if bias else ()
    )
    rounds = [turn for one in measurement.repetitions for process in one.processes for turn in process.turns]
    return Verdicts(
        arms=tuple(
            _proven(name, units[name], _widened(effects[name], bias), pairs[name], measurement, alpha) for name in arms
        ),
        noise=noise,
        noise_unit=units[TWIN],
        noise_notes=noise_notes,
        disturbed_rounds=sum(_disturbed(turn, limit) for turn in rounds),
        rounds=len(rounds),
        alpha=alpha,
    )


def log_ratios(measurement: Measurement) -> dict[str, list[float]]:
    """Natural logarithms of the ratios of the processes' medians, by arm; one per pair that can be compared."""
    return {
        arm.name: [pair.log_ratio for pair in _pairs(measurement, arm.name, _unit(measurement, arm.name), None)]
        for arm in measurement.plan.arms
    }


def without_effect(measurement: Measurement) -> dict[str, str]:
    """Arms of which a treatment did not take effect, with what it showed instead."""
    found = {}
    for arm in measurement.plan.arms:
        missing = _not_applied(_processes(measurement, arm.name))
        if missing is not None:
            found[arm.name] = f"it did not take effect: {missing}"
    return found


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the base and one of an arm, measured together."""

    log_ratio: float
    """Of the medians."""
    series: tuple[float, ...]
    """Log ratios round by round."""
    sums: tuple[float, float]
    """Time of the arm and of the base over all common rounds."""
    warmups: tuple[int, int]
    """Wall time in ns until the end of the warm-up, of the arm and of the base's twin: the base starts alone."""
    step_ns: float
    """Median step of the base."""


def _processes(measurement: Measurement, arm: str) -> list[ProcessResult]:
    return [one for repetition in measurement.repetitions if (one := repetition.of(arm)) is not None]


def _pairs(measurement: Measurement, arm: str, unit: str, limit: float | None) -> list[_Pair]:
    return [pair for one in measurement.repetitions if (pair := _pair(one, arm, unit, limit)) is not None]


def _pair(repetition: Repetition, arm: str, unit: str, limit: float | None) -> _Pair | None:
    base, other, twin = repetition.of(BASE), repetition.of(arm), repetition.of(TWIN)
    if base is None or other is None or base.warmup is None or other.warmup is None:
        return None
    both = [
        (mine, theirs)
        for mine, theirs in zip(other.turns, base.turns, strict=False)
        if not _disturbed(mine, limit) and not _disturbed(theirs, limit)
    ]
    if len(both) < ENOUGH_TURNS:
        return None
    mine, theirs = [_time(turn, unit) for turn, _ in both], [_time(turn, unit) for _, turn in both]
    return _Pair(
        log_ratio=math.log(median(mine) / median(theirs)),
        series=tuple(math.log(one / two) for one, two in zip(mine, theirs, strict=True)),
        sums=(sum(mine), sum(theirs)),
        warmups=(other.warmup.wall_ns, (twin.warmup if twin and twin.warmup else base.warmup).wall_ns),
        step_ns=median(turn.wall_ns / turn.steps for _, turn in both),
    )


def _widened(effect: PairedEffect, bias: float) -> PairedEffect:
    """An effect whose intervals reach further by what identical copies differ by.

    Args:
        effect: of an arm.
        bias: logarithm of a ratio; 0: identical copies do not differ.
    """
    if not bias or effect.low is None or effect.high is None:
        return effect

    def moved(ratio: float | None, by: float) -> float | None:
        return None if ratio is None else ratio * math.exp(by)

    low, high = effect.low * math.exp(-bias), effect.high * math.exp(bias)
    least = effect.smallest_detectable
    return msgspec.structs.replace(
        effect,
        verdict=verdict_of(math.log(low), math.log(high)),
        low=low,
        high=high,
        low_95=moved(effect.low_95, -bias),
        high_95=moved(effect.high_95, bias),
        smallest_detectable=None if least is None else 1 - (1 - least) * math.exp(-bias),
    )


def _proven(
    name: str,
    unit: str,
    effect: PairedEffect,
    pairs: Sequence[_Pair],
    measurement: Measurement,
    alpha: float,
) -> Proven:
    verdict, reason = effect.verdict, effect.reason
    notes = []
    drift = drift_within([pair.series for pair in pairs], alpha)
    if drift is not None and drift.shown and effect.ratio is not None:
        said = f"the ratio changes by {drift.change * 100:+.1f} % from the first to the last round of a process"
        notes.append(said)
        if abs(drift.change) >= abs(math.log(effect.ratio)) and verdict != "cannot_tell":
            verdict, reason = "cannot_tell", f"{said}: longer runs would end elsewhere"
    if drifts_across([pair.log_ratio for pair in pairs], alpha):
        notes.append("the ratio rises or falls from one pair of processes to the next")
    processes = _processes(measurement, name)
    missing = _not_applied(processes)
    if missing is not None:
        verdict, reason = "cannot_tell", f"it did not take effect: {missing}"
    elif name in measurement.left_out or BASE in measurement.left_out:
        culprit = name if name in measurement.left_out else BASE
        verdict, reason = "cannot_tell", f"{culprit} was not measured: {measurement.left_out[culprit]}"
    return Proven(
        arm=name,
        verdict=verdict,
        reason=reason if verdict == "cannot_tell" else None,
        unit=unit,
        effect=effect,
        ratio_of_sums=_ratio_of_sums(pairs),
        payback_steps=_payback(pairs, effect),
        evidence=_evidence(processes),
        notes=tuple(notes),
    )


def _unit(measurement: Measurement, arm: str) -> str:
    """What time is compared per: samples where every turn of both arms knows them."""
    processes = [*_processes(measurement, arm), *_processes(measurement, BASE)]
    turns = [turn for process in processes for turn in process.turns]
    return "sample" if turns and all(turn.samples for turn in turns) else "step"


def _time(turn: Turn, unit: str) -> float:
    return turn.wall_ns / ((turn.samples or 1) if unit == "sample" else turn.steps)


def _disturbed(turn: Turn, limit: float | None) -> bool:
    return limit is not None and turn.foreign_cores is not None and turn.foreign_cores > limit


def _ratio_of_sums(pairs: Sequence[_Pair]) -> float | None:
    theirs = sum(pair.sums[1] for pair in pairs)
    return sum(pair.sums[0] for pair in pairs) / theirs if theirs else None


def _payback(pairs: Sequence[_Pair], effect: PairedEffect) -> float | None:
    if not pairs or effect.ratio is None:
        return None
    longer = median(pair.warmups[0] - pair.warmups[1] for pair in pairs)
    saved = median(pair.step_ns for pair in pairs) * (1 - effect.ratio)
    if longer <= 0:
        return 0.0
    return longer / saved if saved > 0 else None


def _not_applied(processes: Sequence[ProcessResult]) -> str | None:
    """What a treatment showed that was not applied, of the first process where one was not."""
    for process in processes:
        for proved in process.proofs:
            if not proved.proof.applied:
                return f"{proved.choice}: {proved.proof.evidence}"
    return None


def _evidence(processes: Sequence[ProcessResult]) -> tuple[str, ...]:
    return tuple(f"{proved.choice}: {proved.proof.evidence}" for proved in processes[0].proofs) if processes else ()
