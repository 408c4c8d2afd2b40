"""A straight line through points of which some lie far off."""

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.stats.median import checked

_MOST = 1_000
"""Points whose pairs are compared; of more, as many evenly spaced ones are taken."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """``y = intercept + slope * x`` and how well the slope is known."""

    slope: float
    slope_low: float
    slope_high: float
    intercept: float


def robust_line(x: npt.ArrayLike, y: npt.ArrayLike, confidence: float = 0.95) -> Line:
    """The line whose slope is the median of the slopes between all pairs of points.

    Args:
        x: one each, all finite, at least three, not all the same.
        y: one each, all finite.
        confidence: probability that the interval is to hold the slope; with fewer than ten points or so it holds it
            less often than that.
    Raises:
        ValueError: too few points, one not finite, or all at one place.
    Source: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968.
    """
    across, up = checked(x), checked(y)
    if len(across) != len(up) or len(across) < 3 or np.ptp(across) == 0:
        raise ValueError("a line needs three points that are not all at one place")
    from scipy import stats  # takes a second to import

    order = np.argsort(across, kind="stable")
    if len(order) > _MOST:
        order = order[np.linspace(0, len(order) - 1, _MOST).astype(np.int64)]
    found = stats.theilslopes(up[order], across[order], confidence)
    slope = float(found.slope)
    return Line(
        slope=slope,
        slope_low=float(found.low_slope),
        slope_high=float(found.high_slope),
        intercept=float(np.median(up - slope * across)),
    )
