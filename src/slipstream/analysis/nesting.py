"""How spans on threads lie inside each other: one sweep per thread over spans in order of their start.

Real recordings are not perfectly nested. A span that outlasts the one around it (by rounding, or because its end was
never seen) ends with it for the purpose of own time; none is dropped. Two spans that touch but for rounding stay
side by side.
"""

import itertools
import weakref

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.store import Trace

Longs = npt.NDArray[np.int64]

SLACK_NS = 1_000
"""Neighbours overlap by up to one unit of the coarsest clock that recordings use (whole microseconds)."""


class Nesting(msgspec.Struct, frozen=True, kw_only=True):
    """Nesting of spans; arrays in the order in which the spans were given, ``-1`` for none."""

    parent: Longs
    """index of the innermost span around each"""
    root: Longs
    """index of the outermost span around each, itself when outermost"""
    depth: Longs
    """number of spans around each"""
    self_ns: Longs
    """own time: length less that of the spans directly inside; never negative"""
    start: Longs
    """start, moved where it overlapped a neighbour by no more than the slack"""
    end: Longs
    """end, no later than that of the span around it"""
    order: Longs
    """indices by thread and start, outer spans first"""
    borders: dict[int, tuple[int, int]]
    """first and last + 1 position in ``order`` of each thread"""

    def levels(self) -> list[Longs]:
        """Indices of the spans of each depth, outermost first."""
        order = np.argsort(self.depth, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.depth[order])) + 1)

    def innermost(self, thread: npt.ArrayLike, position: npt.ArrayLike) -> Longs:
        """The innermost span around each position on a thread.

        Args:
            thread: one each.
            position: ns.
        Returns:
            Index of the span, -1 where none is around it.
        """
        threads, positions = np.asarray(thread), np.asarray(position, np.int64)
        found = np.full(len(positions), -1, np.int64)
        begin = self.start[self.order]
        for who, (first, last) in self.borders.items():
            mine = np.flatnonzero(threads == who)
            place = first + np.searchsorted(begin[first:last], positions[mine], side="right") - 1
            found[mine] = np.where(place >= first, self.order[place], -1)
        # The last span that started holds the position, or one around it does.
        over = np.flatnonzero(found >= 0)
        while len(over):
            over = over[self.end[found[over]] <= positions[over]]
            found[over] = self.parent[found[over]]
            over = over[found[over] >= 0]
        return found


def nest(thread: npt.ArrayLike, start: npt.ArrayLike, end: npt.ArrayLike, tie: npt.ArrayLike | None = None) -> Nesting:
    """Nest spans on their threads.

    Args:
        thread: one each.
        start: ns, any order.
        end: ns.
        tie: among spans with one start and end the smaller is the outer one; None: the one given first.
    """
    threads, begin, stop = (np.asarray(values, np.int64) for values in (thread, start, end))
    stop = np.maximum(begin, stop)
    keys = (-stop, begin, threads) if tie is None else (np.asarray(tie), -stop, begin, threads)
    order = np.lexsort(keys).astype(np.int64)
    who, begin, stop = threads[order], begin[order], stop[order]
    changes = np.flatnonzero(np.diff(who)) + 1
    edges = [0, *changes.tolist(), len(who)] if len(who) else []
    borders = {int(who[first]): (first, last) for first, last in itertools.pairwise(edges)}
    parent, root, depth = (np.full(len(who), -1, np.int64) for _ in range(3))
    for first, last in borders.values():
        part = slice(first, last)
        swept = _sweep(begin[part].tolist(), stop[part].tolist())
        begin[part], stop[part], inner, outer, depth[part] = (np.array(values, np.int64) for values in swept)
        parent[part] = np.where(inner >= 0, inner + first, -1)
        root[part] = outer + first
    own = stop - begin
    inside = parent >= 0
    np.subtract.at(own, parent[inside], (stop - begin)[inside])
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    given = np.append(order, -1)
    return Nesting(
        parent=given[parent][back],
        root=given[root][back],
        depth=depth[back],
        self_ns=own[back],
        start=begin[back],
        end=stop[back],
        order=order,
        borders=borders,
    )


def _sweep(begin: list[int], stop: list[int]) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Nest the spans of one thread, in order; starts, ends, parents, roots, depths."""
    parent, root, depth = [-1] * len(begin), list(range(len(begin))), [0] * len(begin)
    around: list[int] = []
    for place, (first, last) in enumerate(zip(begin, stop, strict=True)):
        start = first
        while around:
            top = around[-1]
            limit = stop[top]
            if start < limit:
                if last <= limit:
                    break
                inside = limit - start
                # Neither a long stay inside nor a short way out: a child. Else the two only touch.
                if inside > SLACK_NS or last - limit <= inside:
                    stop[place] = limit
                    break
                start = limit
            around.pop()
        if around:
            top = around[-1]
            parent[place], root[place], depth[place] = top, around[0], len(around)
            if start < begin[top]:
                start = begin[top]
        if start != first:
            begin[place] = start
            stop[place] = max(start, stop[place])
        around.append(place)
    return begin, stop, parent, root, depth


_KNOWN: "weakref.WeakKeyDictionary[Trace, dict[str, Nesting]]" = weakref.WeakKeyDictionary()
TIES = {"ops": "external_id", "python": "python_id"}
"""Ids that were given when a span began: of two spans with the same start and end, the smaller is the outer one."""


def nesting_of(trace: Trace, name: str) -> Nesting:
    """Nesting of the rows of ``ops`` or ``python``, worked out once per recording.

    Args:
        trace: the recording.
        name: the table.
    """
    known = _KNOWN.setdefault(trace, {})
    if name not in known:
        rows = trace.table(name)
        tie = rows[TIES[name]].fill_null(0).to_numpy()
        start = rows["ts_ns"].to_numpy()
        known[name] = nest(rows["thread"].to_numpy(), start, start + rows["dur_ns"].to_numpy(), tie)
    return known[name]
