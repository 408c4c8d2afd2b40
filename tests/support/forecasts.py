"""What each change of ``synthetic.changes`` is as edits of the dependency graph, selected from the recording alone."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from slipstream.analysis.graph import EDGE_KINDS, Graph, graph_of
from slipstream.forecast import Edit, cut_waits, on_threads, removing, scaled
from slipstream.store import Tables

Forecast = Callable[[Tables], Sequence[Edit]]
GONE = (0.0, 0.0, 0.0)


def _events(tables: Tables, table: str, pattern: str) -> pl.DataFrame:
    return tables[table].filter(pl.col("name").cast(pl.String).str.contains(pattern))


def _tasks(graph: Graph, rows: pl.DataFrame) -> np.ndarray:
    return np.flatnonzero(np.isin(graph.nodes.event, rows["event"].to_numpy()))


def _within(tables: Tables, rows: pl.DataFrame, factor: float) -> list[Edit]:
    graph = graph_of(tables)
    begin = rows["ts_ns"].to_numpy()
    return [removing(graph, graph.main, begin, begin + rows["dur_ns"].to_numpy(), (factor,) * 3, "as measured")]


def _loader(factor: float) -> Forecast:
    return lambda tables: _within(tables, _events(tables, "annotations", "DataLoader"), factor)


def _on_device(select: Callable[[Tables], pl.DataFrame], factor: float) -> Forecast:
    def edits(tables: Tables) -> list[Edit]:
        graph = graph_of(tables)
        tasks = _tasks(graph, select(tables))
        return [scaled(tasks[~on_threads(graph)[tasks]], (factor,) * 3, "as measured")]

    return edits


def _without_ops(name: str) -> Forecast:
    def edits(tables: Tables) -> list[Edit]:
        rows = tables["ops"].filter(pl.col("name").cast(pl.String) == name)
        work = tables["device_work"].filter(pl.col("op_event").is_in(rows["event"].implode()))
        return [*_within(tables, rows, 0.0), scaled(_tasks(graph_of(tables), work), GONE, "gone")]

    return edits


def _waits(kind: str) -> Forecast:
    """Copies of one way no longer block; the call behind each that waited for it is gone."""

    def edits(tables: Tables) -> list[Edit]:
        graph = graph_of(tables)
        copies = tables["device_work"].filter(pl.col("name").cast(pl.String).str.contains(kind, literal=True))
        calls = tables["runtime"].sort("ts_ns").with_columns(pl.col("event").shift(-1).alias("next"))
        mine = calls.filter(pl.col("event").is_in(copies["launch_event"].implode()))
        return [
            cut_waits(graph, mine["event"].to_numpy(), "no wait"),
            cut_waits(graph, mine["next"].to_numpy(), "no wait", calls_too=True),
        ]

    return edits


def _synchronize(tables: Tables) -> list[Edit]:
    calls = _events(tables, "runtime", "cudaDeviceSynchronize")
    return [cut_waits(graph_of(tables), calls["event"].to_numpy(), "gone", calls_too=True)]


def _overlapped(tables: Tables) -> list[Edit]:
    """Nothing on other streams waits for the exchange."""
    graph = graph_of(tables)
    collective = np.isin(graph.nodes.event, tables["collectives"]["event"].to_numpy())
    kinds = [EDGE_KINDS.index("stream_wait"), EDGE_KINDS.index("inferred_wait")]
    cut = np.flatnonzero(collective[graph.edges.source] & np.isin(graph.edges.kind, kinds))
    nothing = scaled(np.empty(0, np.int64), GONE, "nothing waits for the exchange")
    return [Edit(assumption=nothing.assumption, tasks=nothing.tasks, left=nothing.left, cut=cut)]


FORECASTS: dict[str, Forecast] = {
    "loader hidden": _loader(0.0),
    "loader twice as fast": _loader(0.5),
    "host work removed": lambda tables: _within(tables, _events(tables, "python", r"train.py\(30\): log"), 0.0),
    "allocator calls removed": lambda tables: _within(tables, _events(tables, "runtime", "cudaMalloc"), 0.0),
    "read-backs made asynchronous": _waits("DtoH"),
    "pageable uploads made asynchronous": _waits("Pageable -> Device"),
    "synchronize removed": _synchronize,
    "fills removed": _without_ops("aten::zero_"),
    "elementwise ops fused away": _without_ops("aten::gelu"),
    "optimizer in one launch": _without_ops("aten::addcdiv_"),
    "precision halved": _on_device(lambda tables: _events(tables, "device_work", "^mm_kernel"), 0.5),
    "side stream twice as fast": _on_device(lambda tables: tables["device_work"].filter(pl.col("stream") == 9), 0.5),
    "exchange twice as fast": _on_device(lambda tables: tables["collectives"], 0.5),
    "exchange overlapped": _overlapped,
    "copies half as long": _on_device(lambda tables: tables["device_work"].filter(pl.col("kind") == "copy"), 0.5),
}
