"""Durations come from a clock that nobody adjusts, positions go to disk on the clock of the trace (epoch ns)."""

import time
from collections.abc import Callable

monotonic_ns: Callable[[], int] = time.perf_counter_ns

_TRIES = 9


def epoch_offset_ns() -> int:
    """What to add to a reading of ``monotonic_ns`` to get epoch ns, by the closest of a few pairs of readings.

    The profiler translates its own clock to the epoch when it starts; the offset is taken then, too, so that an
    adjustment of the system's clock during a long job does not part the two.
    """
    pairs = []
    for _ in range(_TRIES):
        before = monotonic_ns()
        epoch = time.time_ns()
        after = monotonic_ns()
        pairs.append((after - before, epoch - (before + after) // 2))
    return min(pairs)[1]
