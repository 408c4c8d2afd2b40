"""Which variants are worth a confirmation. Says nothing about whether any of them is faster."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

MOST_KEPT = 3
LEAST_GAIN = 0.0
"""Share of time: what does not even seem to gain this is dropped."""


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """What goes on to the confirmation, best first, and why the others do not."""

    kept: tuple[str, ...]
    dropped: dict[str, str]


def screen(log_ratios: Mapping[str, Sequence[float]], most: int = MOST_KEPT) -> Screened:
    """Keep the variants that seem to gain most.

    Two processes each are enough to drop what loses a lot, and not enough for any verdict: none is given, and what
    is kept has to be measured again, in fresh processes.

    Args:
        log_ratios: of each variant the natural logarithms of the ratios variant / base; empty: it was not measured.
        most: how many are kept.
    """
    means = {name: float(np.mean(np.asarray(values))) for name, values in log_ratios.items() if len(values)}
    ranked = sorted(means, key=means.__getitem__)
    gaining = [name for name in ranked if means[name] < -LEAST_GAIN]
    dropped = {name: "it was not measured" for name in log_ratios if name not in means}
    for name in ranked:
        saved = -np.expm1(means[name])
        if name not in gaining:
            dropped[name] = f"it did not seem faster when it was screened ({_change(saved)})"
        elif name in gaining[most:]:
            dropped[name] = f"{most} others seemed faster when they were screened ({_change(saved)})"
    return Screened(kept=tuple(gaining[:most]), dropped=dropped)


def _change(saved: float) -> str:
    return f"{abs(saved) * 100:.1f} % {'less' if saved > 0 else 'more'} time"
