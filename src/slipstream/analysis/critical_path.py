"""The chain of tasks that the window's length consists of.

From the last task of the window back: what ended last before a task began is what it waited for. The walk covers the
window once, so path + unexplained = wall time, for the window and (cut at the marks) for every step.

Source: critical path of an execution, as in longest-path analyses of activity graphs; predecessors are those of
``analysis/graph``.
"""

from typing import cast

import numpy as np
import polars as pl

from slipstream.analysis.graph import NODE_KINDS, Graph, graph_of
from slipstream.analysis.graph.edges import INFERRED_WAIT, LAUNCH, STREAM, STREAM_WAIT
from slipstream.analysis.graph.inferred_waits import UNUSUAL_NS
from slipstream.analysis.graph.nodes import GAP, KERNEL, Longs
from slipstream.analysis.step_marks import step_at
from slipstream.model import NotEnoughData
from slipstream.store import Tables
from slipstream.store.recorded import TEXT

LATENCY, UNEXPLAINED = len(NODE_KINDS), len(NODE_KINDS) + 1
KINDS = (*NODE_KINDS, "latency", "unexplained")
_ON_DEVICE = (LAUNCH, STREAM, INFERRED_WAIT, STREAM_WAIT)
"""Edges behind which a device takes a moment to begin."""


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``critical_path``.

    Raises:
        NotEnoughData: there is neither work of a device nor a thread with ops or runtime calls in the window.
    """
    window = tables.row("window")
    first, last = cast(int, window["start_ns"]), cast(int, window["end_ns"])
    graph = graph_of(tables)
    begin = _last_task(graph, first, last)
    if begin < 0:
        raise NotEnoughData("no work of a device and no ops in the window: record with activities=[CPU, CUDA]")
    start, end, kind, node = _spans(graph, _walk(graph, begin, first), first, last)
    start, end, kind, node = _cut_at_marks(tables, start, end, kind, node)
    return _table(tables, graph, start, end, kind, node)


def _last_task(graph: Graph, first: int, last: int) -> int:
    """The task that reaches furthest in the window; what ends with it on the device, else on the main thread, is
    preferred. -1: none.

    A gap of another thread is no reason for a window to be as long as it is.
    """
    nodes = graph.nodes
    inside = (nodes.start_ns < last) & (nodes.end_ns > first)
    main = nodes.resource == (-1 if graph.main is None else graph.main)
    candidates = np.flatnonzero(inside & (main | (nodes.kind != GAP)))
    if not len(candidates):
        return -1
    reach = np.minimum(nodes.end_ns[candidates], last)
    rank = np.where(nodes.kind[candidates] >= KERNEL, 2, np.where(main[candidates], 1, 0))
    return int(candidates[np.lexsort((nodes.start_ns[candidates], rank, reach))[-1]])


def _walk(graph: Graph, node: int, first: int) -> Longs:
    """The tasks from the given one back to the beginning of the window, each what the one before waited for last."""
    decisive = graph.decisive()
    waited_for = np.where(decisive >= 0, np.append(graph.edges.source, -1)[decisive], -1).tolist()
    begun = graph.nodes.start_ns.tolist()
    path = [node]
    while begun[node] > first and waited_for[node] >= 0:
        node = waited_for[node]
        path.append(node)
    return np.array(path, np.int64)


def _spans(graph: Graph, path: Longs, first: int, last: int) -> tuple[Longs, Longs, Longs, Longs]:
    """Start, end, kind and node (-1: none) of the parts of the path, in order of time."""
    path = path[::-1]
    edge = graph.decisive()[path]
    begun = graph.nodes.start_ns[path]
    # A task is on the path until it released the next one; the last task until it ended.
    left = np.append(graph.released_ns[edge[1:]], min(int(graph.nodes.end_ns[path[-1]]), last))
    known = np.append(False, edge[1:] >= 0)
    freed = np.append(first, left[:-1])
    kinds = np.append(graph.edges.kind, 0)[edge]
    short = known & (begun - freed <= UNUSUAL_NS) & np.isin(kinds, _ON_DEVICE)
    start = np.append(np.stack([freed, begun], axis=1).ravel(), left[-1])
    end = np.append(np.stack([begun, left], axis=1).ravel(), last)
    hop = np.where(short, LATENCY, UNEXPLAINED)
    kind = np.append(np.stack([hop, graph.nodes.kind[path].astype(np.int64)], axis=1).ravel(), UNEXPLAINED)
    node = np.append(np.stack([np.where(short, path, -1), path], axis=1).ravel(), -1)
    start = np.maximum(start, first)
    there = end > start
    return start[there], end[there], kind[there], node[there]


def _cut_at_marks(
    tables: Tables, start: Longs, end: Longs, kind: Longs, node: Longs
) -> tuple[Longs, Longs, Longs, Longs]:
    """Spans cut where steps begin and end."""
    steps = tables["steps"]
    marks = np.unique(np.concatenate([steps["start_ns"].to_numpy(), (steps["start_ns"] + steps["dur_ns"]).to_numpy()]))
    low, high = np.searchsorted(marks, start, side="right"), np.searchsorted(marks, end, side="left")
    pieces = np.maximum(high - low, 0) + 1
    owner = np.repeat(np.arange(len(start)), pieces)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    padded = np.append(marks, 0).astype(np.int64)
    left, right = low[owner] + place - 1, low[owner] + place
    begin = np.where(place == 0, start[owner], padded[np.clip(left, 0, len(marks))])
    stop = np.where(place == pieces[owner] - 1, end[owner], padded[np.clip(right, 0, len(marks))])
    return begin, stop, kind[owner], node[owner]


def _table(tables: Tables, graph: Graph, start: Longs, end: Longs, kind: Longs, node: Longs) -> pl.DataFrame:
    where = np.append(graph.nodes.resource, len(graph.resources))[node]
    columns = {
        field: pl.Series([getattr(one, field) for one in graph.resources] + [None], dtype=pl.Int64).gather(where)
        for field in ("thread", "device", "stream")
    }
    event = np.append(graph.nodes.event, -1)[node]
    return pl.DataFrame(
        {
            "start_ns": start,
            "dur_ns": end - start,
            "kind": pl.Series(KINDS, dtype=TEXT).gather(kind),
            "resource": pl.Series([*(one.name for one in graph.resources), None], dtype=TEXT).gather(where),
            **columns,
            "event": pl.Series(event).replace(-1, None),
            "name": _names(tables, event),
            "step": step_at(tables, start),
        }
    )


def _names(tables: Tables, event: Longs) -> pl.Series:
    """Names of events, null for -1."""
    rows = tables["events"].select("event", "name")
    if not rows["event"].is_sorted():
        rows = rows.sort("event")
    known = rows["event"].to_numpy()
    place = np.searchsorted(known, np.maximum(event, 0).astype(known.dtype))
    there = (event >= 0) & (place < len(known))
    there[there] &= known[place[there]] == event[there]
    return rows["name"].gather(pl.Series(np.where(there, place, -1)).replace(-1, None))
