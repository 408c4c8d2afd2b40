"""Sets of moments as half-open intervals, and the algebra on them; plain numpy, no loops over events."""

import msgspec
import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """A set of moments: intervals ``start`` <= t < ``end`` in order, disjoint, not touching, none empty.

    Only the functions of this module make them, so two equal sets have equal arrays.
    """

    start: Longs
    """ns"""
    end: Longs
    """ns"""

    def __len__(self) -> int:
        return len(self.start)


def union(start: npt.ArrayLike, end: npt.ArrayLike) -> Intervals:
    """The moments that lie in at least one of some intervals.

    Args:
        start: ns, any order; intervals may overlap.
        end: ns, one each; an interval that ends at or before its start holds no moment.
    """
    begin, stop = np.asarray(start, np.int64), np.asarray(end, np.int64)
    holds = stop > begin
    if not holds.any():
        return empty()
    begin, stop = begin[holds], stop[holds]
    order = np.argsort(begin, kind="stable")
    begin, reached = begin[order], np.maximum.accumulate(stop[order])
    first = np.concatenate([[True], begin[1:] > reached[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Intervals(start=begin[first], end=reached[last])


def empty() -> Intervals:
    """No moment at all."""
    return Intervals(start=np.empty(0, np.int64), end=np.empty(0, np.int64))


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """The moments that lie in both."""
    points = _borders(a, b)
    return _kept(points, _holds(a, points) & _holds(b, points))


def difference(a: Intervals, b: Intervals) -> Intervals:
    """The moments of ``a`` that do not lie in ``b``."""
    points = _borders(a, b)
    return _kept(points, _holds(a, points) & ~_holds(b, points))


def clip(a: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """The moments of ``a`` from ``start_ns`` to before ``end_ns``."""
    return union(np.maximum(a.start, start_ns), np.minimum(a.end, end_ns))


def length(a: Intervals) -> int:
    """How long the set is, in ns."""
    return int((a.end - a.start).sum())


def covered(a: Intervals, start: npt.ArrayLike, end: npt.ArrayLike) -> Longs:
    """How much of each stretch ``start`` .. ``end`` the set covers, in ns.

    Args:
        a: the set.
        start: ns; stretches may overlap and come in any order.
        end: ns, one each; a stretch that ends before its start has no length.
    """
    begin = np.asarray(start, np.int64)
    stop = np.maximum(begin, np.asarray(end, np.int64))
    if not len(a):
        return np.zeros(len(begin), np.int64)
    sums = np.concatenate([[0], np.cumsum(a.end - a.start)])

    def before(position: Longs) -> Longs:
        index = np.searchsorted(a.start, position, side="right")
        inside = np.maximum(a.end[index - 1] - position, 0)
        return np.where(index > 0, sums[index] - inside, 0).astype(np.int64)

    return before(stop) - before(begin)


def _borders(a: Intervals, b: Intervals) -> Longs:
    return np.unique(np.concatenate([a.start, a.end, b.start, b.end]))


def _holds(a: Intervals, points: Longs) -> npt.NDArray[np.bool_]:
    """Whether each point lies in the set."""
    return np.searchsorted(a.start, points, side="right") > np.searchsorted(a.end, points, side="right")


def _kept(points: Longs, mask: npt.NDArray[np.bool_]) -> Intervals:
    """The stretches from each marked point to the next point."""
    marked = np.flatnonzero(mask)
    return union(points[marked], points[marked + 1]) if len(marked) else empty()
