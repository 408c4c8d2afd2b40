"""Figures for people: three significant digits, the unit that keeps them readable."""

from collections.abc import Sequence

_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def duration(ns: int | None) -> str:
    """A time with its unit, such as ``176 ms``; an en dash where it is missing.

    Args:
        ns: nanoseconds, of either sign; None: not known.
    """
    if ns is None:
        return "–"
    if ns < 0:
        return "-" + duration(-ns)
    # The border between units is half a digit below 1, since 999.6 µs would read "1000 µs".
    factor, unit = next(((f, u) for f, u in _TIMES if ns >= f * 0.9995), _TIMES[-1])
    return f"{three_digits(ns / factor) if factor > 1 else ns} {unit}"


def three_digits(value: float) -> str:
    """A number of any size with three significant digits, never in powers of ten.

    Args:
        value: 0 or above.
    """
    for below, decimals in ((9.995, 2), (99.95, 1)):
        if value < below:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}"


def percent(share: float) -> str:
    """A share of 0..1 for a sentence: ``51 %``, ``4.2 %``, ``0.3 %``, ``< 0.1 %``, ``> 99.9 %``."""
    value = share * 100
    if 0 < value < 0.05:
        return "< 0.1 %"
    if 99.5 <= value < 100:
        return f"{value:.1f} %" if value < 99.95 else "> 99.9 %"
    if value == 0:
        return "0 %"
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def percents(shares: Sequence[float]) -> list[str]:
    """Shares with one decimal, rounded so that what is printed adds up as the shares do.

    Args:
        shares: parts of one whole, each 0..1.
    """
    tenths = [share * 1000 for share in shares]
    whole = [int(value) for value in tenths]
    missing = round(sum(tenths)) - sum(whole)
    by_rest = sorted(range(len(tenths)), key=lambda place: (whole[place] - tenths[place], place))
    for place in by_rest[:missing]:
        whole[place] += 1
    return [f"{value / 10:.1f} %" for value in whole]


def article(figure: str) -> str:
    """``a`` or ``an`` before a figure as it is spoken: an 85 ms step, a 176 ms step."""
    number = figure.split(" ")[0].split(".")[0]
    return "an" if number.startswith("8") or number in ("11", "18") else "a"


def plural(count: int, noun: str) -> str:
    """A count with its noun: ``1 step``, ``1,200 steps``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bar(share: float, width: int) -> str:
    """A bar of at most ``width`` characters, in eighths of one.

    Args:
        share: 0..1 of the width; anything above 0 shows at least the thinnest bar.
        width: characters of a full bar.
    """
    eighths = min(round(share * width * 8), width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
