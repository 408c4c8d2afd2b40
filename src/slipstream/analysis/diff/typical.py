"""The typical step: parts that belong together and add up to the median step.

Medians of parts do not add up to the median of the whole. What is missing (or too much) goes to the parts that vary
most from step to step, for it is they that make the difference; parts that are the same in every step keep their
median.
"""

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


def median_ns(durations: Longs) -> int:
    """The median, in whole nanoseconds."""
    return round(float(np.median(durations)))


def adding_up(times: Longs, whole: int) -> Longs:
    """What each part takes in the typical step.

    Args:
        times: ns, one row per part and one column per step, none below 0.
        whole: ns, what the answer is to add up to.
    Returns:
        Whole nanoseconds, none below 0.
    """
    medians = np.median(times, axis=1)
    spread = np.abs(times - medians[:, None]).mean(axis=1)
    missing = float(whole - medians.sum())
    # Where something is to be taken away, no part can give more than it has: as much as it varies, if that is
    # enough, else from all that vary, else from all.
    shares = [spread] if missing >= 0 else [np.minimum(spread, medians), np.where(spread > 0, medians, 0.0)]
    able = (share for share in (*shares, medians) if share.sum() > 0 and share.sum() >= -missing)
    share = next(able, np.ones(len(medians)))
    return rounded(medians + missing * (share / share.sum()), whole)


def rounded(parts: Doubles, whole: int) -> Longs:
    """Whole numbers as near to the parts as possible that add up to ``whole``.

    Args:
        parts: at least one; they add up to ``whole`` but for rounding.
        whole: their sum.
    """
    # What lies below a whole number by no more than floating point does is that number.
    floor = np.floor(parts + 1e-6).astype(np.int64)
    missing = whole - int(floor.sum())
    order = np.argsort(floor - parts, kind="stable")
    full, rest = divmod(missing, len(parts))
    floor += full
    floor[order[:rest]] += 1
    return floor
