"""Long training: when another window is worth what it costs. Pure decisions, fed step by step."""

import statistics
from collections import deque
from typing import Literal

Reason = Literal["first", "interval", "slow_down", "asked"]

APART = 50
"""Steps between two windows at least."""
RECENT, PAST, FEWEST_PAST = 20, 200, 40
"""Steps that are held against each other for a slow-down: the latest, and those before."""
SLOWER = 1.3
"""Ratio of their medians from which on it is one."""


class Watcher:
    """Says when the next window is due, so that all of them together cost no more than is allowed.

    Args:
        max_overhead: share of the job's time, 0..1. Windows that are asked for, or that a slow-down asks for, may
            exceed it for a while: later ones wait until the average is below it again.
    """

    def __init__(self, max_overhead: float) -> None:
        self._max_overhead = max_overhead
        self._elapsed_ns = 0
        self._spent_ns = 0
        self._last_cost_ns = 0
        self._cost_ns = 0
        self._since = 0
        self._checked = 0
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._past: deque[int] = deque(maxlen=PAST)

    @property
    def overhead(self) -> float:
        """Share of the time so far that windows cost."""
        return self._spent_ns / self._elapsed_ns if self._elapsed_ns else 0.0

    @property
    def usual_ns(self) -> int | None:
        """Median of undisturbed steps; None: too few."""
        steps = [*self._past, *self._recent]
        return round(statistics.median(steps)) if len(steps) >= 3 else None

    def step(self, dur_ns: int, disturbed: bool) -> None:
        """A step has ended.

        Args:
            dur_ns: its time.
            disturbed: whether it was recorded.
        """
        self._elapsed_ns += dur_ns
        self._since += 1
        if disturbed:
            usual = self.usual_ns
            if usual is not None:
                self.cost(max(0, dur_ns - usual))
            return
        if len(self._recent) == RECENT:
            self._past.append(self._recent[0])
        self._recent.append(dur_ns)

    def cost(self, ns: int) -> None:
        """The window that is under way, or was just closed, took this much."""
        self._spent_ns += ns
        self._cost_ns += ns

    def closed(self) -> None:
        """A window has been closed."""
        self._last_cost_ns, self._cost_ns = max(self._cost_ns, self._last_cost_ns // 2), 0
        self._since = 0

    def due(self, asked: bool) -> Reason | None:
        """Whether another window is to be opened now, and why.

        Args:
            asked: whether somebody wants one.
        """
        if asked:
            return "asked"
        if self._since < APART:
            return None
        if self._slower():
            return "slow_down"
        allowed = self._max_overhead * self._elapsed_ns
        return "interval" if self._spent_ns + self._last_cost_ns <= allowed else None

    def _slower(self) -> bool:
        """Whether the latest steps are slower than those before; looked at once for each set of them."""
        self._checked += 1
        if self._checked < RECENT or len(self._recent) < RECENT or len(self._past) < FEWEST_PAST:
            return False
        self._checked = 0
        if statistics.median(self._recent) <= SLOWER * statistics.median(self._past):
            return False
        self._past.clear()  # what is slow now is the usual from here on
        return True
