"""What a fix changes in the dependency graph, with how sure that is."""

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.analysis.graph import Graph
from slipstream.analysis.graph.edges import HAND_OVER, LOADER, SYNC
from slipstream.analysis.graph.nodes import Longs

Factors = tuple[float, float, float]
"""What is left of a duration: at worst, as expected, at best. (1, 1, 1) leaves it as it is."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One change; a fix is a list of them."""

    assumption: str
    """What is taken for granted, as a clause that a report can print."""
    tasks: Longs
    """nodes whose durations are scaled"""
    left: npt.NDArray[np.float64]
    """of each of these tasks what is left, shape (tasks, 3): at worst, as expected, at best"""
    cut: Longs
    """edges that are gone: nothing waits along them any more"""
    ceiling: bool = False
    """whether it takes away more than any fix can"""


def scaled(tasks: Longs, factors: npt.ArrayLike, assumption: str, *, ceiling: bool = False) -> Edit:
    """Tasks take another time.

    Args:
        tasks: nodes.
        factors: what is left of their durations, for all the same three or three for each: shape (tasks, 3).
        assumption: what is taken for granted.
        ceiling: whether it takes away more than any fix can.
    """
    left = np.broadcast_to(np.asarray(factors, float), (len(tasks), 3))
    return Edit(assumption=assumption, tasks=tasks, left=left, cut=np.empty(0, np.int64), ceiling=ceiling)


def removing(
    graph: Graph,
    resource: int | None,
    start_ns: npt.ArrayLike,
    end_ns: npt.ArrayLike,
    factors: Factors,
    assumption: str,
) -> Edit:
    """Stretches of a thread's time become shorter, with the hand-overs that it waited for in them.

    Args:
        graph: of the recording.
        resource: number of the thread in ``graph.resources``; None: every thread.
        start_ns: beginnings of the stretches, which do not overlap.
        end_ns: their ends.
        factors: what is left of the time inside them.
        assumption: what is taken for granted.
    """
    nodes = graph.nodes
    begin, stop = np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64)
    order = np.argsort(begin, kind="stable")
    begin, stop = begin[order], stop[order]
    mine = on_threads(graph) if resource is None else nodes.resource == resource
    index = np.flatnonzero(mine & (nodes.dur_ns > 0))
    covered = _covered(begin, stop, nodes.end_ns[index]) - _covered(begin, stop, nodes.start_ns[index])
    index, covered = index[covered > 0], covered[covered > 0]
    inside = covered / nodes.dur_ns[index]
    left = 1 - inside[:, None] * (1 - np.array(factors)[None, :])
    target = graph.edges.target
    at = nodes.start_ns[target]
    place = np.searchsorted(begin, at, side="right") - 1
    within = (place >= 0) & (at <= np.append(stop, 0)[place]) & mine[target]
    waits = within & np.isin(graph.edges.kind, (LOADER, HAND_OVER)) if factors[1] < 1 else np.zeros(len(at), bool)
    return Edit(assumption=assumption, tasks=index, left=left, cut=np.flatnonzero(waits))


def cut_waits(graph: Graph, events: npt.ArrayLike, assumption: str, *, calls_too: bool = False) -> Edit:
    """Runtime calls no longer wait for the device.

    Args:
        graph: of the recording.
        events: events of the calls.
        assumption: what is taken for granted.
        calls_too: whether the calls themselves are gone as well.
    """
    of_call = np.isin(graph.nodes.event, np.asarray(events, np.int64)) & on_threads(graph)
    index = np.flatnonzero(of_call) if calls_too else np.empty(0, np.int64)
    waits = (graph.edges.kind == SYNC) & of_call[graph.edges.target]
    return Edit(assumption=assumption, tasks=index, left=np.zeros((len(index), 3)), cut=np.flatnonzero(waits))


def on_threads(graph: Graph) -> npt.NDArray[np.bool_]:
    """Whether each node is one of a host thread."""
    host = np.array([one.thread is not None for one in graph.resources], bool)
    return host[graph.nodes.resource]


def _covered(begin: Longs, stop: Longs, until: Longs) -> Longs:
    """How much of the stretches lies before each time."""
    if not len(begin):
        return np.zeros(len(until), np.int64)
    total = np.append(0, np.cumsum(stop - begin))
    place = np.searchsorted(begin, until, side="right")
    last = np.maximum(place - 1, 0)
    beyond = np.where(place > 0, np.maximum(stop[last] - until, 0), 0)
    return total[place] - beyond
