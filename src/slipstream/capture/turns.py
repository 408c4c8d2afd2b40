"""Which optimizer step closes a training step, where several optimizers take turns."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

Segment = TypeVar("Segment")

PATIENCE = 8
"""Optimizer steps, beyond twice the longest wait seen, after which the closing optimizer counts as retired."""


class Change(msgspec.Struct, Generic[Segment], frozen=True, kw_only=True):
    """What an optimizer step does to the list of training steps."""

    undo: bool = False
    """The step that was closed last is open again: its segments are part of what follows."""
    redefined: bool = False
    """From now on another optimizer closes the steps: they are not comparable to the ones before."""
    closed: tuple[Sequence[Segment], ...] = ()
    """Steps that are closed now, each as its segments."""


class Turns(Generic[Segment]):
    """Groups optimizer steps into training steps.

    A step is closed by the *anchor*: the optimizer that steps most rarely, of equals the last one of a turn. With
    one optimizer every step of it closes; with a discriminator and a generator the later of both; with five
    critic updates per generator update the generator. An anchor that stays away is retired, and what piled up
    meanwhile is split by the next one.
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._gaps: dict[int, int] = {}
        self._anchor: int | None = None
        self._open: list[tuple[int, Segment]] = []
        self._since_anchor = 0
        self._first: list[tuple[int, Segment]] | None = []

    def stepped(self, optimizer: int, segment: Segment) -> Change[Segment]:
        """Take note of one optimizer step.

        Args:
            optimizer: identity of the optimizer.
            segment: what was measured since the optimizer step before.
        """
        new = optimizer not in self._counts
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        self._open.append((optimizer, segment))
        if new:
            return self._take_in(optimizer)
        self._first = None
        if optimizer == self._anchor:
            self._gaps[optimizer] = max(self._gaps.get(optimizer, 0), self._since_anchor)
            return Change(closed=(self._close(),))
        self._since_anchor += 1
        if self._anchor is not None and self._since_anchor <= 2 * self._gaps.get(self._anchor, 0) + PATIENCE:
            return Change()
        return self._retire()

    def _take_in(self, optimizer: int) -> Change[Segment]:
        """A newcomer becomes the anchor. While none has stepped twice, all that stepped belong to one first turn."""
        self._anchor = optimizer
        if self._first is None:
            return Change(redefined=True, closed=(self._close(),))
        undo = bool(self._first)
        self._first = self._open = [*self._first, *self._open]
        return Change(undo=undo, closed=(self._close(),))

    def _close(self) -> list[Segment]:
        closed = [segment for _, segment in self._open]
        self._open = []
        self._since_anchor = 0
        return closed

    def _retire(self) -> Change[Segment]:
        """The anchor stays away: the rarest of those that stepped since takes over and splits what piled up."""
        if self._anchor is not None:
            self._gaps[self._anchor] = max(self._gaps.get(self._anchor, 0), self._since_anchor)
        last = {optimizer: place for place, (optimizer, _) in enumerate(self._open)}
        here = dict.fromkeys(last, 0)
        for optimizer, _ in self._open:
            here[optimizer] += 1
        self._anchor = min(last, key=lambda optimizer: (here[optimizer], -last[optimizer]))
        steps: list[list[Segment]] = [[]]
        for optimizer, segment in self._open:
            steps[-1].append(segment)
            if optimizer == self._anchor:
                steps.append([])
        rest = len(steps[-1])
        self._open = self._open[len(self._open) - rest :] if rest else []
        self._since_anchor = rest
        return Change(redefined=True, closed=tuple(steps[:-1]))
