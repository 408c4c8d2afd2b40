"""Whether a ratio changes while it is measured."""

from collections.abc import Sequence

import msgspec
import numpy as np

from slipstream.stats.line import robust_line
from slipstream.stats.median import checked
from slipstream.stats.pairs import ALPHA, LEAST_PAIRS, t_interval


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How much the logarithm of a ratio changes from the first to the last round of a process."""

    change: float
    low: float
    high: float
    shown: bool
    """Whether the interval excludes 0."""


def drift_within(series: Sequence[Sequence[float]], alpha: float = ALPHA) -> Drift | None:
    """Whether log ratios change in the course of processes: a variant that slows down, or was not yet warm.

    The slope of each pair is one value, that of a line through its rounds that ignores outliers; rounds of one process
    may depend on each other, pairs do not.

    Args:
        series: of each pair the log ratios round by round, all finite.
        alpha: probability to see a drift where there is none.
    Returns:
        None: fewer than ``LEAST_PAIRS`` pairs of at least three rounds.
    """
    changes = []
    for values in series:
        if len(values) >= 3:
            ratios = checked(values)
            rounds = np.arange(float(len(ratios)))
            changes.append(robust_line(rounds, ratios).slope * (len(ratios) - 1))
    if len(changes) < LEAST_PAIRS:
        return None
    sample = checked(changes)
    low, high = t_interval(sample, alpha)
    return Drift(change=float(np.mean(sample)), low=low, high=high, shown=not low <= 0 <= high)


def drifts_across(log_ratios: Sequence[float], alpha: float = ALPHA) -> bool | None:
    """Whether log ratios rise or fall from one pair of processes to the next.

    Args:
        log_ratios: in the order in which they were measured, all finite.
        alpha: probability to see a drift where there is none.
    Returns:
        None: too few pairs to tell.
    Source: M. G. Kendall, "A new measure of rank correlation", 1938; exact without ties.
    """
    if len(log_ratios) < LEAST_PAIRS:
        return None
    sample = checked(log_ratios)
    if np.ptp(sample) == 0:
        return False
    from scipy import stats  # takes a second to import

    return bool(stats.kendalltau(np.arange(len(sample)), sample).pvalue < alpha)
