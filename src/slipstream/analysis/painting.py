"""Spans that carry a label: laid over each other in an order of precedence, cut at gaps, looked up.

Everything is plain numpy. ``Painted`` spans are sorted and never overlap, so a position has one label at most.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]


class Painted(msgspec.Struct, frozen=True, kw_only=True):
    """Disjoint labelled spans in order of time; all arrays have the same length."""

    start: Longs
    """ns"""
    end: Longs
    """ns"""
    label: Longs
    """what it is, in the caller's code"""
    event: Longs
    """the event that shows it; -1: none"""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total_ns(self) -> int:
        """Sum of the lengths."""
        return int((self.end - self.start).sum())

    def take(self, mask: npt.NDArray[np.bool_]) -> "Painted":
        """Only the spans where the mask is true."""
        return Painted(start=self.start[mask], end=self.end[mask], label=self.label[mask], event=self.event[mask])


def nothing() -> Painted:
    """No spans."""
    empty = np.empty(0, np.int64)
    return Painted(start=empty, end=empty, label=empty, event=empty)


def paint(start: Longs, end: Longs, label: int | Longs, event: Longs | None = None) -> Painted:
    """Labelled spans from any spans: where they overlap, the one that began first keeps the place.

    Args:
        start: ns, any order.
        end: ns; spans without length are dropped.
        label: one for all, or one each.
        event: one each; None: no event shows it.
    """
    labels = np.full(len(start), label, np.int64) if isinstance(label, int) else np.asarray(label, np.int64)
    events = np.full(len(start), -1, np.int64) if event is None else np.asarray(event, np.int64)
    order = np.lexsort((-np.asarray(end), np.asarray(start)))
    begin, stop = np.asarray(start, np.int64)[order], np.asarray(end, np.int64)[order]
    if len(begin):
        reached = np.maximum.accumulate(stop)
        begin[1:] = np.maximum(begin[1:], reached[:-1])
    spans = Painted(start=begin, end=stop, label=labels[order], event=events[order])
    return spans.take(stop > begin)


def outside(spans: Painted, mask: Painted) -> Painted:
    """The pieces of ``spans`` that no span of ``mask`` covers."""
    if not len(spans) or not len(mask):
        return spans
    first = np.searchsorted(mask.end, spans.start, side="right")
    last = np.searchsorted(mask.start, spans.end, side="left")
    count = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(spans)), count + 1)
    piece = np.arange(len(owner)) - np.repeat(np.cumsum(count + 1) - (count + 1), count + 1)
    left = first[owner] + piece - 1
    right = first[owner] + piece
    # Sentinels: no mask before the first piece of an owner, none after its last.
    mask_end = np.append(mask.end, 0)[np.clip(left, -1, len(mask) - 1)]
    mask_start = np.append(mask.start, 0)[np.clip(right, 0, len(mask))]
    start = np.where(piece == 0, spans.start[owner], np.maximum(mask_end, spans.start[owner]))
    end = np.where(piece == count[owner], spans.end[owner], np.minimum(mask_start, spans.end[owner]))
    pieces = Painted(start=start, end=end, label=spans.label[owner], event=spans.event[owner])
    return pieces.take(end > start)


def inside(spans: Painted, windows: Painted) -> tuple[Painted, npt.NDArray[np.intp]]:
    """The pieces of ``spans`` that lie inside ``windows``.

    Returns:
        The pieces, in order of time, and for each the index of the window it lies in.
    """
    if not len(spans) or not len(windows):
        return nothing(), np.empty(0, np.intp)
    first = np.searchsorted(spans.end, windows.start, side="right")
    last = np.searchsorted(spans.start, windows.end, side="left")
    count = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(windows)), count)
    span = np.repeat(first, count) + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    pieces = Painted(
        start=np.maximum(spans.start[span], windows.start[owner]),
        end=np.minimum(spans.end[span], windows.end[owner]),
        label=spans.label[span],
        event=spans.event[span],
    )
    return pieces, owner


def merge(parts: Sequence[Painted]) -> Painted:
    """Spans of several that do not overlap, in order of time."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return nothing()
    start = np.concatenate([part.start for part in parts])
    order = np.argsort(start, kind="stable")
    return Painted(
        start=start[order],
        end=np.concatenate([part.end for part in parts])[order],
        label=np.concatenate([part.label for part in parts])[order],
        event=np.concatenate([part.event for part in parts])[order],
    )


def layer(parts: Sequence[Painted]) -> Painted:
    """Lay spans over each other: an earlier one in the sequence hides later ones."""
    result = nothing()
    for part in parts:
        result = merge([result, outside(part, result)])
    return result


def complement(spans: Painted, start_ns: int, end_ns: int, label: int) -> Painted:
    """What of ``start_ns`` .. ``end_ns`` no span covers, under one label."""
    whole = paint(np.array([start_ns], np.int64), np.array([end_ns], np.int64), label)
    return outside(whole, spans)


def covered(spans: Painted, start: Longs, end: Longs) -> Longs:
    """How much of each stretch ``start`` .. ``end`` the spans cover, in ns; stretches may overlap each other."""
    if not len(spans):
        return np.zeros(len(start), np.int64)
    sums = np.concatenate([[0], np.cumsum(spans.end - spans.start)])

    def before(position: Longs) -> Longs:
        index = np.searchsorted(spans.start, position, side="right") - 1
        safe = np.maximum(index, 0)
        partial = np.minimum(position, spans.end[safe]) - spans.start[safe]
        return np.where(index >= 0, sums[safe] + partial, 0).astype(np.int64)

    return before(np.maximum(start, end)) - before(start)
