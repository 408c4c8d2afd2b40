"""Whether a job learns as well with other random numbers: losses and gradients over several seeds, paired by seed."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt

from slipstream.model import Seeds, SeedsOf
from slipstream.stats import ALPHA, CONFIDENCE, t_interval
from slipstream.tuning.numerics.observation import Observed

LEAST_SEEDS = 3
ROUNDING = 1e-5
"""Relative difference that is rounding, however regular it is."""
_RESOLUTION = 1e-9
"""Relative spread below which seeds did not change anything."""


def compare_over_seeds(bases: Sequence[Observed | str], runs: Sequence[Observed | str]) -> tuple[Seeds, ...]:
    """Hold the mean losses and gradient norms of runs against those of the job as it is.

    Args:
        bases: the job as it is, one run per seed; a text is why there is none.
        runs: with treatments, seed by seed the same.
    Returns:
        Of losses and of gradient norms: Student's t over the differences of the means, as shares. ``differs`` where
        the interval lies beyond ``ROUNDING``, at 1 % for both together.
    """
    return tuple(_compared(of, bases, runs) for of in get_args(SeedsOf))


def _compared(of: SeedsOf, bases: Sequence[Observed | str], runs: Sequence[Observed | str]) -> Seeds:
    means, differences = [], []
    for base, run in zip(bases, runs, strict=True):
        if isinstance(base, str) or isinstance(run, str):
            return _untold(of, f"a run failed: {base if isinstance(base, str) else run}")
        mine, theirs = _series(of, base), _series(of, run)
        steps = min(len(mine), len(theirs))
        mean, other = (float(series[:steps].mean()) if steps else float("nan") for series in (mine, theirs))
        if not np.isfinite(mean) or not np.isfinite(other) or not mean:
            return _untold(of, f"over {steps} backward passes the means are {mean:.3g} and {other:.3g}")
        means.append(mean)
        differences.append((other - mean) / abs(mean))
    if len(differences) < LEAST_SEEDS:
        return _untold(of, f"{len(differences)} seeds were compared, and {LEAST_SEEDS} are needed")
    if np.ptp(means) <= _RESOLUTION * abs(means[0]):
        return _untold(of, "whatever the seed, the job draws the same random numbers")
    values = np.array(differences, np.float64)
    low, high = t_interval(values, ALPHA / len(get_args(SeedsOf)))
    low_95, high_95 = t_interval(values, 1 - CONFIDENCE)
    return Seeds(
        of=of,
        verdict="differs" if low > ROUNDING or high < -ROUNDING else "no_difference_shown",
        seeds=len(values),
        difference=float(values.mean()),
        low_95=low_95,
        high_95=high_95,
    )


def _series(of: SeedsOf, observed: Observed) -> npt.NDArray[np.float64]:
    return np.array(observed.losses if of == "loss" else observed.gradient_norms, np.float64)


def _untold(of: SeedsOf, reason: str) -> Seeds:
    return Seeds(of=of, verdict="cannot_tell", reason=reason, seeds=0, difference=None, low_95=None, high_95=None)
