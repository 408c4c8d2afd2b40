"""Puts nodes and the edges of all rules together."""

import weakref
from collections.abc import Mapping
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.analysis.graph import device_order, hand_over, inferred_waits, loader, stream_waits, synchronize
from slipstream.analysis.graph.edges import (
    ASSUMED,
    HAND_OVER,
    PROGRAM,
    SYNC,
    Edges,
    Found,
    assemble,
    found,
    offsets,
    release_ns,
    with_lags,
)
from slipstream.analysis.graph.host_time import HostTime, host_time
from slipstream.analysis.graph.nodes import Longs, Nodes, Resource, device_nodes, joined
from slipstream.analysis.graph.waits import Cut, cut
from slipstream.store import Tables


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of one recording and what each had to wait for."""

    nodes: Nodes
    resources: tuple[Resource, ...]
    edges: Edges
    """sorted by target; of those of one target, the last is the one that was satisfied last"""
    incoming: Longs
    """edges ``incoming[n]`` to ``incoming[n + 1]`` lead to node n"""
    released_ns: Longs
    """when each edge was satisfied in the recording"""
    main: int | None
    """resource of the thread that drives training"""
    dropped: Mapping[str, int]
    """false edges by kind: their source ended after their target began; dropped"""
    collided: int
    """waits that are not in the graph, since another one lies in the same segment of the thread"""

    def decisive(self) -> Longs:
        """Index of the edge that was satisfied last before each node began; -1: it has none."""
        return np.where(self.incoming[1:] > self.incoming[:-1], self.incoming[1:] - 1, -1)


_KNOWN: "weakref.WeakKeyDictionary[Tables, Graph]" = weakref.WeakKeyDictionary()


def graph_of(tables: Tables) -> Graph:
    """The graph of a recording, built once."""
    known = _KNOWN.get(tables)
    if known is None:
        known = _KNOWN[tables] = _build(tables)
    return known


def _build(tables: Tables) -> Graph:
    work = tables["device_work"]
    host = host_time(tables)
    threads, number = np.unique(host.thread, return_inverse=True)
    main = cast("int | None", tables.row("window")["main_thread"])
    ops, forward = hand_over.forward_edges(tables)
    pairs = hand_over.partners(ops, forward, host, main, work["launch_thread"])
    handed = hand_over.hand_overs(host, pairs)
    rules = [synchronize.device_waits(tables, host), *handed.waits, loader.batches(tables, host, pairs)]
    pieces = cut(host, rules, number.reshape(-1).astype(np.int64))
    on_device, streams, position = device_nodes(work, len(threads))
    first_device_node = len(pieces.nodes)
    position = position + first_device_node
    nodes = joined(pieces.nodes, on_device)
    launched = host.of_event(work["launch_event"])
    edges: list[Found] = [
        _program(nodes, first_device_node),
        device_order.launches(work, _mapped(pieces.first, launched), position),
        device_order.stream_order(nodes, first_device_node),
        stream_waits.stream_waits(tables, position),
        hand_over.from_forward(ops, forward, host, pieces.first, pieces.last),
        _started(handed, pieces, number.reshape(-1)),
        *_releases(pieces, position),
        _also_awaited(tables, host, pieces, position),
    ]
    main_resource = int(np.searchsorted(threads, main)) if main is not None and main in threads else None
    resources = (*(Resource(thread=int(thread)) for thread in threads), *streams)
    edges.append(inferred_waits.inferred_waits(nodes, resources, edges))
    edges.append(_assumed(nodes, edges, main_resource))
    return _graph(nodes, resources, edges, main_resource, pieces)


def _graph(nodes: Nodes, resources: tuple[Resource, ...], rules: list[Found], main: int | None, pieces: Cut) -> Graph:
    edges, dropped = assemble(nodes, rules)
    incoming = offsets(edges, len(nodes))
    last = np.zeros(len(edges), bool)
    last[incoming[1:][incoming[1:] > incoming[:-1]] - 1] = True
    return Graph(
        nodes=nodes,
        resources=resources,
        edges=with_lags(nodes, edges, last),
        incoming=incoming,
        released_ns=release_ns(nodes, edges.source, edges.target, edges.kind),
        main=main,
        dropped=dropped,
        collided=pieces.collided,
    )


def _program(nodes: Nodes, count: int) -> Found:
    """From each task of a thread to the next one."""
    place = np.arange(1, count, dtype=np.int64)
    same = nodes.resource[place] == nodes.resource[place - 1]
    return found(PROGRAM, place[same] - 1, place[same])


def _mapped(where: Longs, index: Longs) -> Longs:
    """``where`` at each index, -1 for -1."""
    return np.append(where, -1)[index]


def _started(handed: hand_over.HandOvers, pieces: Cut, resource: npt.NDArray[np.integer]) -> Found:
    """From what the asking thread did before it waited to what it started on the other thread."""
    source = pieces.first[handed.asking]
    # Without a part before the wait it was the segment in front, if there is one.
    alone = source == pieces.last[handed.asking]
    front = handed.asking - 1
    has_front = (front >= 0) & (resource[front] == resource[handed.asking])
    source = np.where(alone, np.where(has_front, _mapped(pieces.last, front), -1), source)
    return found(HAND_OVER, source, pieces.first[handed.started])


def _releases(pieces: Cut, position: Longs) -> list[Found]:
    """From what released each wait to what the waiting thread did then."""
    rules = []
    for waits in pieces.waits:
        source = np.where(waits.work >= 0, _mapped(position, waits.work), _mapped(pieces.last, waits.releasing))
        rules.append(found(waits.kind, source, pieces.last[waits.segment]))
    return rules


def _also_awaited(tables: Tables, host: HostTime, pieces: Cut, position: Longs) -> Found:
    """From device work to the calls that it would have held up, had it not been done."""
    segment, row = synchronize.also_awaited(tables, host)
    return found(SYNC, position[row], pieces.last[segment])


def _assumed(nodes: Nodes, rules: list[Found], main: int | None) -> Found:
    """Hang what has no predecessor at all on what the main thread had done last before it began."""
    if main is None:
        return found(ASSUMED, [], [])
    has = np.zeros(len(nodes), bool)
    for rule in rules:
        has[rule.target] = True
    alone = np.flatnonzero(~has & (nodes.resource != main))
    first, last = np.searchsorted(nodes.resource, [main, main + 1])
    place = first + np.searchsorted(nodes.end_ns[first:last], nodes.start_ns[alone], side="right") - 1
    return found(ASSUMED, np.where(place >= first, place, -1), alone)
