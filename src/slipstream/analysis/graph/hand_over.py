"""Threads that hand work to each other: one stands still until the other is done.

The backward pass runs on a thread of autograd's own while the thread that asked for it waits. Arrows and sequence
numbers tell which threads those are; where there are none, a thread that works in the gaps of the main thread alone,
and launches work for the device, is taken for one. When it happens is told by the gaps: what runs within one gap of
the asking thread was asked for in it.
"""

import msgspec
import numpy as np
import polars as pl

from slipstream.analysis.forward_ops import forward_of, is_backward
from slipstream.analysis.graph.edges import FORWARD, HAND_OVER, Found, found
from slipstream.analysis.graph.host_time import HostTime
from slipstream.analysis.graph.nodes import GAP, Longs
from slipstream.analysis.graph.waits import Waits
from slipstream.store import Tables

_APART = 0.05
"""Share of its time that a thread may work beside the main thread's own work and still count as working in its gaps."""


class HandOvers(msgspec.Struct, frozen=True, kw_only=True):
    """Waits of the asking threads for the others, and those of the others for being asked."""

    waits: tuple[Waits, ...]
    asking: Longs
    """segment in whose gap the other thread was started: the part before the wait"""
    started: Longs
    """segment that was started"""


def forward_edges(tables: Tables) -> tuple[pl.DataFrame, Longs]:
    """The ops, and for each the index of the forward op that it is the backward of; -1: none."""
    ops = tables["ops"]
    return ops, forward_of(tables, ops, ~is_backward(ops))


def partners(
    ops: pl.DataFrame, forward: Longs, host: HostTime, main: int | None, launching: pl.Series
) -> list[tuple[int, int]]:
    """Pairs of an asking thread and one that works for it.

    Args:
        ops: the table.
        forward: as from ``forward_edges``.
        host: segments of threads.
        main: the thread that drives training.
        launching: threads that launched work of the device; others (that watch collectives, say) are no partners of
            the main thread unless arrows or numbers tell so.
    """
    threads = ops["thread"].to_numpy().astype(np.int64)
    linked = np.flatnonzero(forward >= 0)
    pairs = pl.DataFrame({"other": threads[linked], "asking": threads[forward[linked]]})
    counts = pairs.filter(pl.col("other") != pl.col("asking")).group_by("other", "asking").len()
    best = counts.sort("len", "asking", descending=[True, False]).unique("other", keep="first", maintain_order=True)
    told = {int(other): int(asking) for other, asking in best.select("other", "asking").iter_rows()}
    if main is not None:
        told |= {
            int(other): main
            for other in np.intersect1d(threads, launching.drop_nulls().to_numpy())
            if other not in told and other != main and _in_gaps(host, main, int(other))
        }
    return sorted((asking, other) for other, asking in told.items())


def _in_gaps(host: HostTime, main: int, other: int) -> bool:
    """Whether a thread works while the main thread does not, and only then."""
    mine, theirs = host.part_of(main), host.part_of(other)
    busy = host.kind[mine] != GAP
    start, end = host.start[mine][busy], host.end[mine][busy]
    begin, stop = host.start[theirs][~host.outside[theirs]], host.end[theirs][~host.outside[theirs]]
    if not len(begin) or not len(start):
        return False
    sums = np.concatenate([[0], np.cumsum(end - start)])
    beside = _worked(start, end, sums, stop) - _worked(start, end, sums, begin)
    return bool(beside.sum() <= _APART * (stop - begin).sum())


def _worked(start: Longs, end: Longs, sums: Longs, position: Longs) -> Longs:
    index = np.searchsorted(start, position, side="right") - 1
    safe = np.maximum(index, 0)
    return np.where(index >= 0, sums[safe] + np.minimum(position, end[safe]) - start[safe], 0)


def hand_overs(host: HostTime, pairs: list[tuple[int, int]]) -> HandOvers:
    """Find where each thread of a pair waits for the other."""
    parts = [part for part in (_of_pair(host, *pair) for pair in pairs) if len(part[0])]
    if not parts:
        none = np.empty(0, np.int64)
        return HandOvers(waits=(), asking=none, started=none)
    asking, began, ended, first, final = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    # Several threads may work within one gap: it ends with the last of them.
    order = np.lexsort((ended, asking))
    last = np.append(asking[order][1:] != asking[order][:-1], True)
    by_gap = order[last]
    earliest = np.full(int(asking.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(earliest, asking, began)
    gaps = asking[by_gap]
    none = np.full(len(gaps), -1, np.int64)
    own = Waits(
        kind=HAND_OVER,
        segment=gaps,
        from_ns=earliest[gaps],
        until_ns=ended[by_gap],
        work=none,
        releasing=final[by_gap],
        front=np.zeros(len(gaps), bool),
    )
    return HandOvers(waits=(own, _idle_before(host, first)), asking=asking, started=first)


def _of_pair(host: HostTime, asking: int, other: int) -> tuple[Longs, Longs, Longs, Longs, Longs]:
    """Gaps of the asking thread in which the other works: gap, begin and end of that, first and last segment."""
    mine, theirs = host.part_of(asking), host.part_of(other)
    gaps = np.flatnonzero(host.kind[mine] == GAP) + mine.start
    working = np.flatnonzero(~host.outside[theirs]) + theirs.start
    if not len(working):
        none = np.empty(0, np.int64)
        return none, none, none, none, none
    low = np.searchsorted(host.start[working], host.start[gaps], side="left")
    high = np.searchsorted(host.end[working], host.end[gaps], side="right")
    holds = high > low
    first, final = working[low[holds]], working[high[holds] - 1]
    return gaps[holds], host.start[first], host.end[final], first, final


def _idle_before(host: HostTime, first: Longs) -> Waits:
    """The time before a thread is started is no work of its own.

    What started it is the middle of a gap, not a segment's end: that edge is made from ``asking`` and ``started``.
    """
    place = first - 1
    idle = (place >= 0) & (host.thread[place] == host.thread[first]) & host.outside[place]
    segment = place[idle]
    none = np.full(len(segment), -1, np.int64)
    return Waits(
        kind=HAND_OVER,
        segment=segment,
        from_ns=host.start[segment],
        until_ns=host.end[segment],
        work=none,
        releasing=none,
        front=np.zeros(len(segment), bool),
    )


def from_forward(ops: pl.DataFrame, forward: Longs, host: HostTime, cut_first: Longs, cut_last: Longs) -> Found:
    """Edges from the end of a forward op to the beginning of its backward op on another thread."""
    backward = np.flatnonzero(forward >= 0)
    thread = ops["thread"].to_numpy().astype(np.int64)
    backward = backward[thread[backward] != thread[forward[backward]]]
    start = ops["ts_ns"].to_numpy()
    end = start + ops["dur_ns"].to_numpy()
    made = forward[backward]
    source = segments_at(host, thread[made], end[made] - 1)
    target = segments_at(host, thread[backward], start[backward])
    known = (source >= 0) & (target >= 0)
    return found(FORWARD, cut_last[source[known]], cut_first[target[known]])


def segments_at(host: HostTime, thread: Longs, position: Longs) -> Longs:
    """The segment of a thread that lies at each position; -1: none."""
    answer = np.full(len(thread), -1, np.int64)
    for who in np.unique(thread):
        part = host.part_of(int(who))
        mine = np.flatnonzero(thread == who)
        place = np.searchsorted(host.start[part], position[mine], side="right") - 1 + part.start
        there = place >= part.start
        there[there] &= host.end[place[there]] > position[mine][there]
        answer[mine[there]] = place[there]
    return answer
