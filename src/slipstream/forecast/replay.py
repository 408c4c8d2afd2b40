"""Executes the dependency graph of a window: every task begins when what it waited for is done.

One pass over the tasks in an order in which every source comes before its targets. Threads and streams need no clock
of their own: the order of their tasks is edges like any other.

Source: replay of execution graphs as in "Daydream" (Zhu and others, USENIX ATC 2020) and "Lumos" (MLSys 2025).
"""

import weakref
from collections import deque
from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.analysis.graph import LAUNCH, Graph, graph_of
from slipstream.analysis.graph.edges import STREAM
from slipstream.analysis.graph.inferred_waits import UNUSUAL_NS
from slipstream.analysis.graph.nodes import KERNEL, Longs
from slipstream.forecast.edits import Edit
from slipstream.model import NotEnoughData
from slipstream.store import Tables

WORST, EXPECTED, BEST = range(3)
_NEVER = -(1 << 60)


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A window ready to be replayed. Arrays over its tasks are in an order in which sources come before targets."""

    graph: Graph
    node: Longs
    """node of the graph that each task is"""
    dur_ns: Longs
    delay_ns: Longs
    """time that passed in the recording after all that is known to have held the task up, as far as it is a usual
    latency; what is longer has a reason that the graph does not know, and is left out"""
    floor_ns: Longs
    """when what it waited for from before the window was done; least time where nothing was"""
    incoming: Longs
    """edges ``incoming[n]`` to ``incoming[n + 1]`` lead to task n"""
    edge: Longs
    """edge of the graph that each is"""
    ready: Longs
    """twice the source, plus 1 where its end counts, not its start"""
    lag_ns: Longs
    step: Longs
    """step, from 0, that the task belongs to: of device work that of its launch"""
    start_ns: int
    recorded_ns: Longs
    """length of each step: from when all before it was done to when all of it was"""
    replayed_ns: Longs
    """the same, replayed without any edit"""

    @property
    def error(self) -> float:
        """By how much the unedited replay misses the window's length, as a share."""
        recorded = int(self.recorded_ns.sum())
        return abs(int(self.replayed_ns.sum()) - recorded) / recorded if recorded else 0.0

    @property
    def step_errors(self) -> list[float]:
        """By how much it misses each step, as a share."""
        there = self.recorded_ns > 0
        errors = np.abs(self.replayed_ns - self.recorded_ns)[there] / self.recorded_ns[there]
        return [float(error) for error in errors]

    @property
    def target(self) -> Longs:
        """Task that each edge leads to."""
        return np.repeat(np.arange(len(self.node)), np.diff(self.incoming))

    def steps_with(self, edits: Sequence[Edit], case: int = EXPECTED) -> Longs:
        """Length of each step in ns with all edits made, replayed together.

        Args:
            edits: made one after the other: factors for one task multiply.
            case: ``WORST``, ``EXPECTED`` or ``BEST``.
        """
        left = np.ones(len(self.graph.nodes))
        gone = np.zeros(len(self.graph.edges), bool)
        for edit in edits:
            left[edit.tasks] *= edit.left[:, case]
            gone[edit.cut] = True
        mine = left[self.node]
        dur = np.rint(self.dur_ns * mine).astype(np.int64)
        delay = np.where(mine > 0, self.delay_ns, 0)
        removed = (mine <= 0)[self.target]
        kind = self.graph.edges.kind[self.edge]
        # What is removed is not launched, and its stream makes no pause for it; what came before still comes before.
        lag = np.where(removed & (kind == STREAM), 0, self.lag_ns)
        lag = np.where(gone[self.edge] | (removed & (kind == LAUNCH)), _NEVER, lag)
        return _lengths(run(self, dur, delay, lag), self.step, self.start_ns, len(self.recorded_ns))


_KNOWN: "weakref.WeakKeyDictionary[Tables, Replay]" = weakref.WeakKeyDictionary()


def replay_of(tables: Tables) -> Replay:
    """The window of a recording, replayed once without edits.

    Raises:
        NotEnoughData: the window holds no host thread to replay.
    """
    known = _KNOWN.get(tables)
    if known is None:
        known = _KNOWN[tables] = _prepared(tables)
    return known


def run(replay: Replay, dur: Longs, delay: Longs, lag: Longs) -> Longs:
    """End of every task, in ns.

    Args:
        replay: the window.
        dur: duration of every task.
        delay: what passes before each, behind what it waits for.
        lag: of every edge.
    """
    done = [0] * (2 * len(dur))  # of each task its start and its end
    first = 0
    sources, lags = replay.ready.tolist(), lag.tolist()
    place = 0
    for floor, wait, length, last in zip(
        replay.floor_ns.tolist(), delay.tolist(), dur.tolist(), replay.incoming[1:].tolist(), strict=True
    ):
        begin = floor
        for edge in range(first, last):
            free = done[sources[edge]] + lags[edge]
            if free > begin:
                begin = free
        begin += wait
        done[place] = begin
        done[place + 1] = begin + length
        place += 2
        first = last
    return np.array(done[1::2], np.int64)


def _prepared(tables: Tables) -> Replay:
    graph = graph_of(tables)
    window = tables.row("window")
    first, last = cast(int, window["start_ns"]), cast(int, window["end_ns"])
    nodes, edges = graph.nodes, graph.edges
    inside = (nodes.start_ns >= first) & (nodes.start_ns < last)
    if graph.main is None or not (inside & (nodes.resource == graph.main)).any():
        raise NotEnoughData("no host thread in the window whose tasks could be replayed: record with CPU activity")
    mine = inside[edges.target]
    within = np.flatnonzero(mine & inside[edges.source])
    outside = np.flatnonzero(mine & ~inside[edges.source])
    node = _ordered(graph, np.flatnonzero(inside), within)
    place = np.full(len(nodes), -1, np.int64)
    place[node] = np.arange(len(node))
    floor = np.full(len(nodes), _NEVER, np.int64)
    np.maximum.at(floor, edges.target[outside], graph.released_ns[outside] + np.minimum(edges.lag_ns[outside], 0))
    within = within[np.lexsort((within, place[edges.target[within]]))]
    launch = edges.kind[within] == LAUNCH
    lag = edges.lag_ns[within]
    lag = np.where(launch, np.minimum(lag, UNUSUAL_NS), lag)
    source = edges.source[within]
    free = np.where(launch, nodes.start_ns[source], nodes.end_ns[source]) + lag
    held = floor.copy()
    np.maximum.at(held, edges.target[within], free)
    alone = held <= _NEVER
    floor[alone] = held[alone] = nodes.start_ns[alone]
    slack = nodes.start_ns - held
    starts, number = _steps(tables, graph, node, place, within, first, last)
    replay = Replay(
        graph=graph,
        node=node,
        dur_ns=np.minimum(nodes.end_ns, last)[node] - nodes.start_ns[node],
        delay_ns=np.where(slack <= UNUSUAL_NS, np.maximum(slack, 0), 0)[node],
        floor_ns=floor[node],
        incoming=np.searchsorted(place[edges.target[within]], np.arange(len(node) + 1)).astype(np.int64),
        edge=within,
        ready=2 * place[source] + np.where(launch, 0, 1),
        lag_ns=lag,
        step=number,
        start_ns=first,
        recorded_ns=_lengths(np.minimum(nodes.end_ns, last)[node], number, first, len(starts)),
        replayed_ns=np.empty(0, np.int64),
    )
    ends = run(replay, replay.dur_ns, replay.delay_ns, replay.lag_ns)
    return msgspec.structs.replace(replay, replayed_ns=_lengths(ends, number, first, len(starts)))


def _ordered(graph: Graph, inside: Longs, within: Longs) -> Longs:
    """Nodes so that every source of an edge comes before its target: by time, which only ties can spoil."""
    nodes, edges = graph.nodes, graph.edges
    order = inside[np.lexsort((inside, nodes.end_ns[inside], nodes.start_ns[inside]))]
    rank = np.full(len(nodes), -1, np.int64)
    rank[order] = np.arange(len(order))
    source, target = edges.source[within], edges.target[within]
    if (rank[source] < rank[target]).all():
        return order
    return _by_edges(order, rank[source], rank[target])


def _by_edges(order: Longs, source: Longs, target: Longs) -> Longs:
    """Kahn's order of nodes, those of equal standing as they were."""
    open_edges = np.bincount(target, minlength=len(order)).tolist()
    by_source = np.argsort(source, kind="stable")
    first = np.searchsorted(source[by_source], np.arange(len(order) + 1)).tolist()
    heads = target[by_source].tolist()
    waiting = deque(place for place, count in enumerate(open_edges) if not count)
    found: list[int] = []
    while waiting:
        place = waiting.popleft()
        found.append(place)
        for head in heads[first[place] : first[place + 1]]:
            open_edges[head] -= 1
            if not open_edges[head]:
                waiting.append(head)
    if len(found) < len(order):
        raise NotEnoughData("tasks of the recording wait for each other in a circle: its times are not to be trusted")
    return order[np.array(found, np.int64)]


def _steps(
    tables: Tables, graph: Graph, node: Longs, place: Longs, within: Longs, first: int, last: int
) -> tuple[Longs, Longs]:
    """Beginnings of the steps, and the step that every task belongs to."""
    starts = np.sort(tables["steps"]["start_ns"].to_numpy().astype(np.int64))
    starts = np.unique(np.append(first, starts[(starts > first) & (starts < last)]))
    nodes, edges = graph.nodes, graph.edges
    since = nodes.start_ns[node].copy()
    launches = within[edges.kind[within] == LAUNCH]
    since[place[edges.target[launches]]] = nodes.start_ns[edges.source[launches]]
    # The start of a task of the device without a launch of its own (of a replayed graph) is that of the one before.
    on_device = nodes.kind[node] >= KERNEL
    launched = np.zeros(len(node), bool)
    launched[place[edges.target[launches]]] = True
    by_stream = np.lexsort((nodes.start_ns[node], nodes.resource[node]))
    owner = np.maximum.accumulate(
        np.where(
            launched[by_stream] | ~on_device[by_stream] | _new(nodes.resource[node][by_stream]), np.arange(len(node)), 0
        )
    )
    since[by_stream] = since[by_stream][owner]
    return starts, np.clip(np.searchsorted(starts, since, side="right") - 1, 0, len(starts) - 1)


def _new(resource: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Where another resource begins."""
    return np.append(True, resource[1:] != resource[:-1])[: len(resource)]


def _lengths(ends: Longs, step: Longs, start_ns: int, count: int) -> Longs:
    """Length of each step: from when all of the steps before was done to when all of it was."""
    done = np.full(count, start_ns, np.int64)
    np.maximum.at(done, step, ends)
    return np.diff(np.maximum.accumulate(done), prepend=start_ns)
