"""Edges, and which of them the recording itself contradicts."""

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.analysis.graph.nodes import Longs, Nodes

EdgeKind = Literal[
    "program",
    "assumed",
    "forward",
    "launch",
    "loader",
    "hand_over",
    "stream",
    "inferred_wait",
    "stream_wait",
    "sync",
]
EDGE_KINDS: tuple[EdgeKind, ...] = (
    "program",
    "assumed",
    "forward",
    "launch",
    "loader",
    "hand_over",
    "stream",
    "inferred_wait",
    "stream_wait",
    "sync",
)
"""``Edges.kind`` is a position in this. Of two predecessors that ended at the same moment the later kind is the one
that counts. assumed: nothing in the recording tells what a task waited for, so it is hung on the main thread;
inferred_wait: two streams whose times alone tell that one waited."""
PROGRAM, ASSUMED, FORWARD, LAUNCH, LOADER, HAND_OVER, STREAM, INFERRED_WAIT, STREAM_WAIT, SYNC = range(len(EDGE_KINDS))


class Edges(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies; arrays of one length, sorted by target."""

    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    lag_ns: Longs
    """least time from the source's end - of a launch from its start - to the target's start"""

    def __len__(self) -> int:
        return len(self.kind)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule found: node indices of sources and targets."""

    kind: int
    source: Longs
    target: Longs


def found(kind: int, source: npt.ArrayLike, target: npt.ArrayLike) -> Found:
    """Edges of one kind; a pair with an index below 0 is left out."""
    tails, heads = np.asarray(source, np.int64), np.asarray(target, np.int64)
    known = (tails >= 0) & (heads >= 0)
    return Found(kind=kind, source=tails[known], target=heads[known])


def release_ns(nodes: Nodes, source: Longs, target: Longs, kind: npt.NDArray[np.integer]) -> Longs:
    """When each edge was satisfied: the end of its source. A kernel may begin before its launch call has returned,
    so a launch is satisfied when it returned or its work began, whichever was first - but not before it began itself.
    """
    end = nodes.end_ns[source]
    launched = np.maximum(np.minimum(end, nodes.start_ns[target]), nodes.start_ns[source])
    return np.where(kind == LAUNCH, launched, end)


def assemble(nodes: Nodes, rules: list[Found]) -> tuple[Edges, dict[str, int]]:
    """All edges that the recording does not contradict.

    An edge whose source ended after its target began is false, or the clocks disagree: it is dropped.

    Args:
        nodes: the tasks.
        rules: what each rule found.
    Returns:
        The edges, and how many were dropped by kind.
    """
    source = np.concatenate([rule.source for rule in rules])
    target = np.concatenate([rule.target for rule in rules])
    kind = np.concatenate([np.full(len(rule.source), rule.kind, np.uint8) for rule in rules])
    released = release_ns(nodes, source, target, kind)
    true = (released <= nodes.start_ns[target]) & (source != target)
    dropped = {str(name): int(((kind == number) & ~true).sum()) for number, name in enumerate(EDGE_KINDS)}
    source, target, kind, released = source[true], target[true], kind[true], released[true]
    order = np.lexsort((source, kind, released, target))
    edges = Edges(source=source[order], target=target[order], kind=kind[order], lag_ns=np.zeros(len(order), np.int64))
    return edges, dropped


def offsets(edges: Edges, count: int) -> Longs:
    """Position of the first edge of each target, and the number of edges at the end."""
    return np.searchsorted(edges.target, np.arange(count + 1)).astype(np.int64)


def with_lags(nodes: Nodes, edges: Edges, last: npt.NDArray[np.bool_]) -> Edges:
    """Edges with what launches and streams take by themselves.

    Where an edge was the last to be satisfied its lag was seen; elsewhere it is the usual one, as far as it fits.
    A stream's pause is never taken to be longer than usual: what is longer has a reason that the graph does not know.

    Args:
        nodes: the tasks.
        edges: sorted so that the last of a target's edges is the last that was satisfied.
        last: whether each is that one.
    """
    start = nodes.start_ns[edges.target]
    lag = np.zeros(len(edges), np.int64)
    for kind, since in ((LAUNCH, nodes.start_ns), (STREAM, nodes.end_ns)):
        mine = np.flatnonzero(edges.kind == kind)
        seen = start[mine] - since[edges.source[mine]]
        decisive = last[mine]
        usual = int(np.median(seen[decisive])) if decisive.any() else 0
        fitting = np.minimum(seen, usual)
        lag[mine] = np.where(decisive, seen, fitting) if kind == LAUNCH else fitting
    return msgspec.structs.replace(edges, lag_ns=lag)
