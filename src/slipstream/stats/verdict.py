"""The one rule by which an interval becomes a verdict."""

from slipstream.model import Verdict


def verdict_of(low: float, high: float) -> Verdict:
    """What the interval of a difference in time says of B against A.

    Args:
        low: lower end of the interval of B less A, or of the logarithm of B / A.
        high: upper end.
    Raises:
        ValueError: the ends are not ordered; NaN is not.
    """
    if not low <= high:
        raise ValueError(f"{low} to {high} is no interval")
    if high < 0:
        return "faster"
    return "slower" if low > 0 else "no_difference_shown"
