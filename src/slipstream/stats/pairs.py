"""Pairs of processes -> how much faster one variant is, with verdicts that hold for all variants together.

One pair gives one value, the logarithm of the ratio of the medians of its two processes: the process is what is
replicated, however many steps it took. Of these values the mean is judged with Student's t. Why t and not ranks: with
8 pairs the least two-sided p-value of a rank or sign-flip test is 2/256 = 0.8 %, which cannot pass the 1 % that four
variants share. Why t is safe: where a variant changes nothing, its process and the base's are exchangeable, so that
their log ratio is distributed symmetrically about 0, however skewed the times are; and for values that are mixtures of
normal distributions about a common mean, each with a spread of its own, the t-test at levels up to 8 % rejects at
most as often as it says.

Source: R. Ibragimov, U. K. Mueller, "t-statistic based correlation and heterogeneity robust inference", 2010;
S. Holm, "A simple sequentially rejective multiple test procedure", 1979.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.model import Verdict
from slipstream.stats.comparison import CONFIDENCE
from slipstream.stats.median import checked
from slipstream.stats.verdict import verdict_of

ALPHA = 0.01
"""Probability that at least one verdict of a family is wrong where nothing changed."""
POWER = 0.8
"""Probability with which the smallest detectable effect is found."""
LEAST_PAIRS = 8
_RESOLUTION = 1e-9
"""Spread below which log ratios are what rounding leaves: times are whole nanoseconds."""


class PairedEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What pairs of processes tell about a variant against the base."""

    verdict: Verdict
    """faster: the variant takes less time."""
    reason: str | None
    """Why it is ``cannot_tell``."""
    pairs: int
    ratio: float | None
    """Time of the variant over that of the base (0.9: takes 10 % less), geometric mean; None: no pair."""
    low: float | None
    """Interval of the ratio that the verdict rests on, at ``confidence``; None: too few pairs."""
    high: float | None
    confidence: float | None
    """What is left of 1 after this variant's part of the error that the family shares."""
    low_95: float | None
    """Interval for this variant alone, at 95 %."""
    high_95: float | None
    p_value: float | None
    """Of the t-test, two-sided, not adjusted."""
    smallest_detectable: float | None
    """Share of time: a variant that saves this much is found with the probability ``power``, at this spread and at
    the strictest level that the family asks for."""
    power: float = POWER


def judge(log_ratios: Mapping[str, Sequence[float]], alpha: float = ALPHA) -> dict[str, PairedEffect]:
    """Judge several variants that were measured against one base.

    Verdict and interval always agree: the interval of each is at the level at which Holm's procedure tested it, or
    stopped before it.

    Args:
        log_ratios: of each variant one natural logarithm of the ratio variant / base per pair of processes, all
            finite. Variants with fewer than ``LEAST_PAIRS`` cannot be told, but take their part of ``alpha``.
        alpha: probability of any wrong verdict among all.
    Raises:
        ValueError: a value is not finite.
    """
    samples = {name: checked(values) for name, values in log_ratios.items() if len(values)}
    enough = {name: values for name, values in samples.items() if len(values) >= LEAST_PAIRS}
    p_values = {name: _p_value(values) for name, values in enough.items()}
    strictest = alpha / max(len(log_ratios), 1)
    level, found = strictest, {}
    stopped = False
    for place, name in enumerate(sorted(enough, key=p_values.__getitem__)):
        if not stopped:
            level = alpha / (len(log_ratios) - place)
            stopped = p_values[name] >= level
        found[name] = _effect(enough[name], p_values[name], level, strictest)
    return {name: found.get(name) or _too_few(samples.get(name)) for name in log_ratios}


def t_interval(values: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    """Interval of a mean: Student's t.

    Args:
        values: at least two.
        level: probability that it is missed, both sides together.
    """
    from scipy import stats  # takes a second to import

    half = float(stats.t.isf(level / 2, len(values) - 1)) * _standard_error(values)
    middle = float(np.mean(values))
    return middle - half, middle + half


def smallest_detectable(spread: float, pairs: int, level: float, power: float = POWER) -> float:
    """Least mean, in units of the values, that the t-test at a level finds with a probability.

    Args:
        spread: standard deviation of the values.
        pairs: their number, at least two.
        level: of the two-sided test.
        power: probability to find it, on the right side.
    """
    from scipy import optimize, stats

    critical = float(stats.t.isf(level / 2, pairs - 1))

    def missing(shift: float) -> float:
        return float(stats.nct.sf(critical, pairs - 1, shift)) - power

    # The shift of the non-central distribution lies near critical + 0.84; far above it for few pairs.
    return float(optimize.brentq(missing, 0.0, 10 * (critical + 3))) * spread / math.sqrt(pairs)


def _p_value(values: npt.NDArray[np.float64]) -> float:
    from scipy import stats

    return float(2 * stats.t.sf(abs(float(np.mean(values))) / _standard_error(values), len(values) - 1))


def _standard_error(values: npt.NDArray[np.float64]) -> float:
    return _spread(values) / math.sqrt(len(values))


def _spread(values: npt.NDArray[np.float64]) -> float:
    return max(float(np.std(values, ddof=1)), _RESOLUTION)


def _effect(values: npt.NDArray[np.float64], p_value: float, level: float, strictest: float) -> PairedEffect:
    low, high = t_interval(values, level)
    low_95, high_95 = t_interval(values, 1 - CONFIDENCE)
    least = smallest_detectable(_spread(values), len(values), strictest)
    return PairedEffect(
        verdict=verdict_of(low, high),
        reason=None,
        pairs=len(values),
        ratio=math.exp(float(np.mean(values))),
        low=math.exp(low),
        high=math.exp(high),
        confidence=1 - level,
        low_95=math.exp(low_95),
        high_95=math.exp(high_95),
        p_value=p_value,
        smallest_detectable=-math.expm1(-least),
    )


def _too_few(values: npt.NDArray[np.float64] | None) -> PairedEffect:
    pairs = 0 if values is None else len(values)
    return PairedEffect(
        verdict="cannot_tell",
        reason=f"{pairs} pairs of processes were measured, and a verdict needs {LEAST_PAIRS}",
        pairs=pairs,
        ratio=None if values is None else math.exp(float(np.mean(values))),
        low=None,
        high=None,
        confidence=None,
        low_95=None,
        high_95=None,
        p_value=None,
        smallest_detectable=None,
    )
