"""The median of a sample and how well it is known."""

import msgspec
import numpy as np
import numpy.typing as npt

_RESAMPLES = 2_000
_SEED = 20_240_901
"""Resampling is seeded: the same samples have the same interval, whoever asks."""
_BATCH_VALUES = 4_000_000


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A median with its interval."""

    median: float
    low: float | None
    """None: one value does not tell how much values vary"""
    high: float | None
    count: int


def median_spread(values: npt.ArrayLike, confidence: float = 0.95) -> Spread:
    """The median and its bootstrap interval.

    Args:
        values: any unit, at least one, all finite; taken to be independent of each other.
        confidence: probability that the interval is to hold the median of what the sample was drawn from. With few
            values (below ten or so) it holds it less often than that.
    Raises:
        ValueError: there is no value, or one is not finite.
    Source: percentile bootstrap, B. Efron, 1979.
    """
    sample = checked(values)
    median = float(np.median(sample))
    if len(sample) < 2:
        return Spread(median=median, low=None, high=None, count=len(sample))
    from scipy import stats  # takes a second to import

    result = stats.bootstrap(
        (sample,),
        np.median,
        n_resamples=_RESAMPLES,
        batch=max(1, _BATCH_VALUES // len(sample)),
        confidence_level=confidence,
        # The default (BCa) has no answer where all values are the same.
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    low, high = (float(limit) for limit in result.confidence_interval)
    return Spread(median=median, low=low, high=high, count=len(sample))


def checked(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The values as floating-point numbers.

    Raises:
        ValueError: there is none, or one is not finite.
    """
    sample = np.asarray(values, np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError("a sample needs at least one value")
    if not np.isfinite(sample).all():
        raise ValueError("a sample may hold finite values only")
    return sample
