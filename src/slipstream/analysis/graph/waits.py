"""Stretches in which a thread stood still for something else: cut out of its segments, since they are no work.

What is left behind a wait is what takes place after the release; it may have no length, but it is always there, so
that the release has something to point to.
"""

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.analysis.graph.host_time import HostTime
from slipstream.analysis.graph.nodes import SYNC, Longs, Nodes


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """Waits that one rule found, at most one per segment; arrays of one length."""

    kind: int
    """kind of the edges from what released them"""
    segment: Longs
    """segment that it lies in"""
    from_ns: Longs
    until_ns: Longs
    work: Longs
    """row of ``device_work`` that released it; -1: a segment did"""
    releasing: Longs
    """segment whose end released it; -1: device work did"""
    front: npt.NDArray[np.bool_]
    """whether a task must be left in front of the wait, even without length: the call launched what it waits for"""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of threads after the cutting, and where each segment went."""

    nodes: Nodes
    first: Longs
    """first task of each segment"""
    last: Longs
    """last task of each segment"""
    waits: tuple[Waits, ...]
    """those that were cut out"""
    collided: int
    """waits that were not, because another one lies in the same segment"""


def cut(host: HostTime, rules: list[Waits], resource: Longs) -> Cut:
    """Cut waits out of segments.

    Args:
        host: the segments.
        rules: waits; of two in one segment the one of the earlier rule is kept.
        resource: resource of each segment.
    """
    count = len(host)
    since, until = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    calls, front = np.zeros(count, bool), np.zeros(count, bool)
    kept: list[Waits] = []
    collided = 0
    for waits in rules:
        inside = (waits.from_ns >= host.start[waits.segment]) & (waits.until_ns <= host.end[waits.segment])
        free = inside & (waits.until_ns >= waits.from_ns) & (since[waits.segment] < 0)
        collided += int((~free).sum())
        mine = _where(waits, free)
        since[mine.segment], until[mine.segment] = mine.from_ns, mine.until_ns
        calls[mine.segment[mine.work >= 0]] = True
        front[mine.segment[mine.front]] = True
        kept.append(mine)
    waiting = since >= 0
    before = waiting & (front | (since > host.start))
    parts = np.where(before, 2, 1)
    last = np.cumsum(parts) - 1
    first = last - (parts - 1)
    owner = np.repeat(np.arange(count), parts)
    start, end, kind = host.start[owner], host.end[owner], host.kind[owner]
    end[first[before]] = since[before]
    start[last[waiting]] = until[waiting]
    kind[last[calls]] = SYNC
    nodes = Nodes(
        kind=kind,
        resource=resource[owner].astype(np.int32),
        start_ns=start,
        dur_ns=end - start,
        event=host.event[owner],
    )
    return Cut(nodes=nodes, first=first, last=last, waits=tuple(kept), collided=collided)


def _where(waits: Waits, mask: npt.NDArray[np.bool_]) -> Waits:
    return Waits(
        kind=waits.kind,
        segment=waits.segment[mask],
        from_ns=waits.from_ns[mask],
        until_ns=waits.until_ns[mask],
        work=waits.work[mask],
        releasing=waits.releasing[mask],
        front=waits.front[mask],
    )
