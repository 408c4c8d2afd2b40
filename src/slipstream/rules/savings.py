"""Edits of the dependency graph for rules whose fix makes ops cheaper or needless."""

import numpy as np
import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.forecast import Edit, on_threads, removing, scaled
from slipstream.forecast.edits import Factors
from slipstream.rules.scope import Scope
from slipstream.store import Tables


def without_ops(tables: Tables, scope: Scope, rows: pl.DataFrame, left: Factors, assumption: str) -> tuple[Edit, ...]:
    """Ops lose their time: on a device all of their time on the host and their kernels, else ``cost_ns`` of each.

    Args:
        tables: of the recording.
        scope: of the window.
        rows: thread, ts_ns, end_ns and cost_ns; those of one thread do not overlap.
        left: what is left of that time.
        assumption: what is taken for granted.
    """
    graph = graph_of(tables)
    number = {resource.thread: place for place, resource in enumerate(graph.resources) if resource.thread is not None}
    edits = []
    for (thread,), part in rows.group_by("thread", maintain_order=True):
        if thread not in number:
            continue
        begin = part["ts_ns"].to_numpy()
        end = part["end_ns"].to_numpy()
        stop = end if scope.on_device else np.minimum(begin + part["cost_ns"].to_numpy(), end)
        edits.append(removing(graph, number[thread], begin, stop, left, assumption))
    if scope.on_device:
        kernels = np.isin(graph.nodes.event, _launched_by(tables, rows)["event"].to_numpy()) & ~on_threads(graph)
        edits.append(scaled(np.flatnonzero(kernels), left, assumption))
    return tuple(edits)


def _launched_by(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    """Device work whose launch lies inside one of some ops."""
    spans = rows.select("thread", "ts_ns", "end_ns").drop_nulls().sort("ts_ns")
    work = tables["device_work"].filter(pl.col("launch_ts_ns").is_not_null())
    work = work.select("event", pl.col("launch_thread").alias("thread"), pl.col("launch_ts_ns").alias("ts_ns"))
    inside = work.sort("ts_ns").join_asof(
        spans.with_columns(begin_ns="ts_ns"), on="ts_ns", by="thread", check_sortedness=False
    )
    return inside.filter(pl.col("ts_ns") < pl.col("end_ns"))
