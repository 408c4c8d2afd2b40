"""Figures as they stand in the sentences of rules: a person reads milliseconds and per cent."""

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def duration(ns: int) -> str:
    """A time with three significant digits and its unit, such as ``176 ms``.

    Args:
        ns: nanoseconds, 0 or above.
    """
    # The border is half a digit below 1, since 999.6 µs would read "1000 µs".
    factor, unit = next(((factor, unit) for factor, unit in _UNITS if ns >= factor * 0.9995), _UNITS[-1])
    return f"{three_digits(ns / factor) if factor > 1 else ns} {unit}"


def size(size_bytes: int) -> str:
    """Bytes with their unit, such as ``38.5 MB``."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= factor * 0.9995:
            return f"{three_digits(size_bytes / factor)} {unit}"
    return f"{size_bytes} bytes"


def three_digits(value: float) -> str:
    """A number with three significant digits, never in powers of ten.

    Args:
        value: 0 or above.
    """
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share of 0..1: ``51 %``, ``4.2 %``, ``< 0.1 %``."""
    value = share * 100
    if 0 < value < 0.05:
        return "< 0.1 %"
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def plural(count: int, noun: str) -> str:
    """A count with its noun: ``1 step``, ``1,200 steps``, ``3 launches``."""
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith(('ch', 'x', 's')) else 's'}"


def per_step(count: int, steps: int | None, noun: str) -> str:
    """How often something happened: ``189 copies a step``, or ``945 copies`` where steps are not known."""
    if not steps:
        return plural(count, noun)
    each = count / steps
    return (
        f"{plural(round(each), noun)} a step" if each >= 0.95 else f"{plural(count, noun)} in {plural(steps, 'step')}"
    )
