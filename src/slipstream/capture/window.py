"""When to record: pure decisions at step boundaries, driven by a clock that a test can replace."""

import statistics
from collections.abc import Callable, Sequence
from typing import Literal

Phase = Literal["warmup", "prepared", "recording", "between", "places", "over"]
Action = Literal["none", "prepare", "open", "mark", "close", "close_for_places", "begin_places", "end_places"]

MINIMUM_WARMUP = 3
"""Steps that always pass in automatic mode."""
EARLIEST = 2
"""What a step is must have been seen before one is recorded: twice, where several optimizers take turns."""
PATIENCE = 4
"""Steps after which the window is prepared even if step times still vary: nobody knows how many will follow."""
STEADY_STEPS = 3
STEADY_RATIO = 1.15
"""Longest over shortest of the last steps up to which they are steady."""
SETTLED_STEPS = 20
"""Steps after the window, by which it shows whether it was opened too early."""
TOO_EARLY_RATIO = 1.3
"""Steps before the window over steps long after it, from which on it was opened too early and opens once more."""
ATTEMPTS = 3
"""Windows, and steps traced line by line, that an evaluation may interrupt before it is given up."""
FEWEST = 2
"""Recorded steps that are worth keeping when a window cannot be completed."""
LONGEST_NS = 120_000_000_000
"""A window that lasts longer is closed as soon as it holds the fewest steps."""


class Window:
    """Decides on each step boundary what happens next.

    Args:
        steps: steps to record.
        warmup: steps before that; None: until step times are steady, at least three, bounded. Should the steps
            become much faster later on (caches, compilation, allocators), the window opens a second time.
        places: whether one more step is to be traced line by line.
        clock: ns, monotonic.
    """

    def __init__(self, steps: int, warmup: int | None, places: bool, clock: Callable[[], int]) -> None:
        self.phase: Phase = "warmup"
        self.steps = steps
        self.recorded = 0
        """Complete steps in the current window."""
        self.attempts = 0
        self._warmup = None if warmup is None else max(warmup, EARLIEST)
        self._places = places
        self._clock = clock
        self._opened_ns = 0
        self._not_before = 0
        self._before_ns = 0
        self._places_attempts = 0
        self._second_look: int | None = None
        self.again = False
        """Whether a window has been completed before."""
        self.ended = False
        """Whether nothing will be recorded any more, whatever happens."""

    def boundary(self, done: int, durations_ns: Sequence[int]) -> Action:
        """A step has ended.

        Args:
            done: steps since the job began.
            durations_ns: of the latest steps, oldest first.
        """
        if self.phase == "warmup":
            return self._prepare(durations_ns) if self._warm(done, durations_ns) else "none"
        if self.phase == "prepared":
            self.phase = "recording"
            self.recorded = 0
            self.attempts += 1
            self._opened_ns = self._clock()
            return "open"
        if self.phase == "recording":
            self.recorded += 1
            too_long = self.recorded >= FEWEST and self._clock() - self._opened_ns > LONGEST_NS
            if self.recorded < self.steps and not too_long:
                return "mark"
            self._second_look = done + SETTLED_STEPS if self._warmup is None and not self.again else None
            self.again = True
            self.phase = "places" if self._places else "over"
            return "close_for_places" if self._places else "close"
        if self.phase == "between":
            self.phase = "places"
            return "begin_places"
        if self.phase == "places":
            self.phase = "over"
            return "end_places"
        if self._second_look is not None and done >= self._second_look:
            self._second_look = None
            if self._before_ns > TOO_EARLY_RATIO * statistics.median(durations_ns):
                return self._prepare(durations_ns)
        return "none"

    def interrupt(self, done: int) -> Literal["keep", "discard"]:
        """Something else than training began inside the window.

        Args:
            done: steps since the job began.
        Returns:
            Whether what was recorded is worth keeping; if not, it is recorded again after the next step.
        """
        if self.phase == "places":
            self._places_attempts += 1
            self.phase = "between" if self._places_attempts < ATTEMPTS else "over"
            return "discard"
        if self.recorded >= min(FEWEST, self.steps):
            self.phase = "between" if self._places else "over"
            self.again = True
            return "keep"
        self._not_before = done + 1
        self.phase = "warmup" if self.attempts < ATTEMPTS else "over"
        return "discard"

    def restart(self, done: int) -> None:
        """What a step is has changed: the window, unless it is complete, waits for new steady steps.

        Args:
            done: steps since the job began.
        """
        self._not_before = done + MINIMUM_WARMUP
        self.phase = "warmup"

    def reopen(self) -> None:
        """Another window is wanted, after one that is over; lines are not traced again."""
        if self.phase == "over" and not self.ended:
            self.phase = "warmup"
            self.attempts = 0
            self._places = False
            self._second_look = None

    def give_up(self) -> None:
        """Nothing will be recorded any more."""
        self.phase = "over"
        self.ended = True
        self._second_look = None

    def _prepare(self, durations_ns: Sequence[int]) -> Action:
        self._before_ns = min(durations_ns[-STEADY_STEPS:], default=0)
        self.phase = "prepared"
        return "prepare"

    def _warm(self, done: int, durations_ns: Sequence[int]) -> bool:
        if done < self._not_before:
            return False
        if self._warmup is not None:
            return done >= self._warmup - 1
        if done < MINIMUM_WARMUP:
            return False
        last = durations_ns[-STEADY_STEPS:]
        if len(last) == STEADY_STEPS and max(last) <= STEADY_RATIO * min(last):
            return True
        return done >= PATIENCE
