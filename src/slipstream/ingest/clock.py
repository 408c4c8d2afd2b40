"""Times of a trace as integer nanoseconds, exact to the last digit that was written.

A trace writes microseconds with up to three decimals. As a float such a number is exact to the nanosecond below
2**43 us (its error, half a unit in the last place, is then less than half a nanosecond); whole numbers are exact
below 2**53. Only absolute epoch times with decimals lie beyond: they are read from their text.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import msgspec
import polars as pl

from slipstream.ingest.records import Number

EXACT_FLOAT_US = float(2**43)
EXACT_INT_US = 2**53
BEYOND_NS = 2**62
"""Stands for a time that no 64-bit nanosecond count can hold; it is unusable, but known to be huge."""
EPOCH_US = (1_000_000_000_000_000, 4_000_000_000_000_000)
"""Microseconds that are plausible as an absolute time: the years 2001 to 2096."""
FAR_NS = 30 * 24 * 3600 * 1_000_000_000
"""Events further than 30 days from the median are not from the same recording: their times are unusable."""


def nanoseconds(values: Sequence[Number]) -> pl.Series | None:
    """Microseconds as decoded -> nanoseconds.

    Args:
        values: numbers, numbers as text, or None.
    Returns:
        Int64, null where there is no number; None when the floats are not exact and the text is needed.
    """
    types = set(map(type, values))
    if types <= {int, type(None)}:
        return _whole(values)
    if str in types or bool in types:
        return None
    try:
        micros = pl.Series(values, dtype=pl.Float64, strict=False)
    except (OverflowError, TypeError, pl.exceptions.PolarsError):
        return None
    large = (~(micros.abs() < EXACT_FLOAT_US)).fill_null(False).arg_true()
    if any(type(values[at]) is not int or abs(micros[at]) >= EXACT_INT_US for at in large.to_list()):
        return None
    whole = micros.floor()
    return whole.cast(pl.Int64) * 1000 + ((micros - whole) * 1000).round().cast(pl.Int64)


def _whole(values: Sequence[Number]) -> pl.Series | None:
    try:
        micros = pl.Series(values, dtype=pl.Int64)
    except (OverflowError, TypeError, pl.exceptions.PolarsError):
        return None
    largest = micros.abs().max()
    return None if isinstance(largest, int) and largest >= EXACT_INT_US else micros * 1000


def nanoseconds_of_texts(texts: Sequence[msgspec.Raw]) -> pl.Series:
    """The same from the text of each value: a JSON number, a string that holds one, or anything else (null)."""
    return pl.Series([exact_ns(bytes(text).strip(b'" ').decode(errors="replace")) for text in texts], dtype=pl.Int64)


def exact_ns(text: str) -> int | None:
    """One decimal number of microseconds as nanoseconds; None when it is none."""
    whole, point, decimals = text.partition(".")
    if (
        point
        and len(decimals) <= 3
        and decimals.isascii()
        and decimals.isdigit()
        and whole.isascii()
        and whole.isdigit()
    ):
        count = int(whole) * 1000 + int(decimals.ljust(3, "0"))
        return min(count, BEYOND_NS)
    try:
        value = Decimal(text)
        if not value.is_finite():
            return None
        if abs(value) > BEYOND_NS // 1000:
            return BEYOND_NS if value > 0 else -BEYOND_NS
        return int((value * 1000).to_integral_value(ROUND_HALF_EVEN))
    except (InvalidOperation, ValueError):
        return None


def usable(times: pl.Series) -> pl.Series:
    """Which absolute times (ns, null allowed) belong to this recording.

    A time of 0 beside others that are weeks later was never collected; one beyond any range is damage.
    """
    middle = times.filter((times > 0) & (times < BEYOND_NS)).median()
    if middle is None:
        return (times >= 0) & (times < BEYOND_NS)
    near = (times - int(float(str(middle)))).abs() < FAR_NS
    return (near & (times > -BEYOND_NS)).fill_null(False)


def origin_ns(earliest_ns: int, base_ns: int | None) -> int | None:
    """Absolute time of the earliest event in epoch ns; None when the file tells no absolute time.

    Args:
        earliest_ns: its ``ts`` in ns.
        base_ns: ``baseTimeNanoseconds``, if the file has one.
    """
    if EPOCH_US[0] * 1000 <= earliest_ns <= EPOCH_US[1] * 1000:
        return earliest_ns
    return base_ns + earliest_ns if base_ns else None
