"""Two samples of times -> faster, slower, no difference shown, or cannot tell.

The verdict rests on ranks (Wilcoxon, Mann and Whitney), which hold for any distribution and shrug off a few steps
that stalled. The interval is the one that belongs to that test: the shifts between the two samples that the test
would not reject. So verdict and interval never contradict each other.
"""

import functools

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.model import Verdict
from slipstream.stats.median import checked
from slipstream.stats.verdict import verdict_of

CONFIDENCE = 0.95
_MOST_VALUES = 2_000
"""Samples beyond this are thinned to as many of their quantiles: the interval takes the differences of all pairs."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What two samples of times tell about B against A; in the unit of the samples."""

    verdict: Verdict
    """faster: B takes less"""
    reason: str | None
    """Why it is ``cannot_tell``."""
    difference: float
    """median of B less median of A, unless another estimate was given"""
    low: float | None
    """interval of the difference; None: cannot tell"""
    high: float | None
    smallest_detectable: float | None
    """Least difference that samples of this size and spread would have shown; None: cannot tell."""


def compare(
    a: npt.ArrayLike, b: npt.ArrayLike, confidence: float = CONFIDENCE, estimate: float | None = None
) -> Comparison:
    """Compare two samples of times.

    Args:
        a: at least one finite value; taken to be independent of each other.
        b: the same, of what is compared with ``a``.
        confidence: probability that the interval holds the true shift.
        estimate: what to tell as the difference; None: that of the medians.
    Returns:
        Where the difference that is told lies outside the interval of the test (samples of very different shape),
        the interval is widened to hold it, which can only turn a verdict into ``no_difference_shown``.
    Raises:
        ValueError: a sample is empty or holds something that is not finite.
    Source: J. L. Hodges, E. L. Lehmann, "Estimates of location based on rank tests", 1963.
    """
    before, after = checked(a), checked(b)
    difference = float(np.median(after) - np.median(before)) if estimate is None else estimate
    rank = _critical_rank(min(len(before), _MOST_VALUES), min(len(after), _MOST_VALUES), confidence)
    if rank is None:
        return Comparison(
            verdict="cannot_tell",
            reason=_too_few(len(before), len(after), confidence),
            difference=difference,
            low=None,
            high=None,
            smallest_detectable=None,
        )
    low, high = _limits(before, after, rank)
    # Each sample around its own median: what would be left between two samples without a difference.
    least, most = _limits(before - np.median(before), after - np.median(after), rank)
    low, high = min(low, difference), max(high, difference)
    return Comparison(
        verdict=verdict_of(low, high),
        reason=None,
        difference=difference,
        low=low,
        high=high,
        smallest_detectable=max(-least, most, 0.0),
    )


def _too_few(before: int, after: int, confidence: float) -> str:
    if min(before, after) == 1:
        which = "A and B hold" if before == after else "A holds" if before == 1 else "B holds"
        return f"{which} a single value, which does not tell how much values vary"
    return f"{before} against {after} values cannot show any difference at {confidence * 100:.0f} %"


def _limits(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], rank: int) -> tuple[float, float]:
    """The ``rank``-th least and the ``rank``-th greatest of the differences of all pairs."""
    pairs = np.subtract.outer(_thinned(after), _thinned(before)).ravel()
    pairs.partition((rank - 1, len(pairs) - rank))
    return float(pairs[rank - 1]), float(pairs[len(pairs) - rank])


def _thinned(sample: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if len(sample) <= _MOST_VALUES:
        return sample
    return np.quantile(sample, (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES)


@functools.lru_cache(maxsize=256)
def _critical_rank(before: int, after: int, confidence: float) -> int | None:
    """Greatest k for which U < k is as rare as half of what the confidence leaves; None: not even U = 0 is."""
    allowed = (1 - confidence) / 2
    if _chance(before, after, 0) > allowed:
        return None
    low, high = 0, before * after // 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _chance(before, after, middle) <= allowed else (low, middle - 1)
    return low + 1


def _chance(before: int, after: int, pairs: int) -> float:
    """Probability, without a difference, that at most that many pairs have their value of B above that of A.

    The test itself is asked, for samples without ties made to have just that many such pairs.
    """
    from scipy import stats  # takes a second to import, which commands that compare nothing need not wait for

    above, rest = divmod(pairs, before)
    a = np.arange(1.0, before + 1)
    steps = np.arange(after) / (after + 1)
    b = -1.0 - steps
    b[:above] = before + 2 + steps[:above]
    if rest:
        b[above] = rest + 0.5
    return float(stats.mannwhitneyu(b, a, alternative="less").pvalue)
