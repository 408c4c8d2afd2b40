"""Edges between streams that no row shows: work that had been launched long before began as work elsewhere ended.

Most recordings hold no rows of streams that wait for each other, though nearly all training on several devices does.
"""

import numpy as np

from slipstream.analysis.graph.edges import INFERRED_WAIT, Found, found, release_ns
from slipstream.analysis.graph.nodes import Longs, Nodes, Resource

UNUSUAL_NS = 50_000
"""A pause that a device does not make by itself: beyond it there is a reason."""
CLOSE_NS = 20_000
"""How soon after what it waited for queued work begins."""


def inferred_waits(nodes: Nodes, resources: tuple[Resource, ...], rules: list[Found]) -> Found:
    """Guess what device tasks waited for whose launch and stream do not explain when they began.

    Args:
        nodes: the tasks.
        resources: threads and streams.
        rules: what all other rules found.
    """
    free = np.full(len(nodes), np.iinfo(np.int64).min)
    for rule in rules:
        released = release_ns(nodes, rule.source, rule.target, np.full(len(rule.source), rule.kind))
        true = released <= nodes.start_ns[rule.target]
        np.maximum.at(free, rule.target[true], released[true])
    device = np.array([-2 if one.thread is not None else -1 if one.device is None else one.device for one in resources])
    where = device[nodes.resource] if len(nodes) else np.empty(0, np.int64)
    late = (where > -2) & (free < nodes.start_ns - UNUSUAL_NS)
    parts = [
        _before(nodes, np.flatnonzero(where == one), np.flatnonzero(late & (where == one)))
        for one in set(device.tolist())
    ]
    none = np.empty(0, np.int64)
    source, target = (np.concatenate([none, *(part[side] for part in parts)]) for side in (0, 1))
    return found(INFERRED_WAIT, source, target)


def _before(nodes: Nodes, candidates: Longs, late: Longs) -> tuple[Longs, Longs]:
    """What ended last, and shortly, before each late task began."""
    by_end = candidates[np.argsort(nodes.end_ns[candidates], kind="stable")]
    place = np.searchsorted(nodes.end_ns[by_end], nodes.start_ns[late], side="right") - 1
    there = place >= 0
    late, source = late[there], by_end[place[there]]
    close = (nodes.start_ns[late] - nodes.end_ns[source] <= CLOSE_NS) & (nodes.start_ns[source] < nodes.start_ns[late])
    return source[close], late[close]
