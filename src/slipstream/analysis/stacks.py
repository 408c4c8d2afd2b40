"""Whole stacks from Python to device work, added up: what a flame graph is drawn from."""

import numpy as np
import polars as pl

from slipstream.analysis.nesting import Longs, nest
from slipstream.store import Tables

_SEPARATOR = ";"


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``stacks``, the costliest first."""
    window = tables.row("window")
    first, last = int(str(window["start_ns"])), int(str(window["end_ns"]))
    python = tables["python"].select("thread", "name", "ts_ns", "dur_ns", event=pl.lit(None, pl.UInt32))
    ops = tables["ops"].select("thread", "name", "ts_ns", "dur_ns", "event")
    rows = pl.concat([part.with_columns(pl.col("name").cast(pl.String)) for part in (python, ops)])
    rows = rows.filter(pl.col("ts_ns") < last, pl.col("ts_ns") + pl.col("dur_ns") > first)
    start = rows["ts_ns"].to_numpy()
    stop = np.minimum(start + rows["dur_ns"].to_numpy(), last)
    nesting = nest(rows["thread"].fill_null(-1).to_numpy(), np.maximum(start, first), stop)
    path, paths = _paths(nesting.parent, nesting.depth, rows["name"].to_list())
    texts = pl.Series("stack", paths, dtype=pl.String)
    host = pl.DataFrame({"stack": texts.gather(path), "self_ns": nesting.self_ns}).with_columns(
        device_ns=pl.lit(0, pl.Int64), count=pl.lit(1, pl.Int64)
    )
    of_op = pl.DataFrame({"op_event": rows["event"], "path": path}).drop_nulls()
    work = tables["device_work"].filter(pl.col("ts_ns").is_between(first, last, closed="left"))
    work = work.select("op_event", "dur_ns", pl.col("name").cast(pl.String)).join(of_op, on="op_event", how="left")
    above = texts.gather(work["path"].fill_null(0)) if len(texts) else pl.Series(["" for _ in range(work.height)])
    device = work.select(
        stack=pl.when(pl.col("path").is_null())
        .then(pl.lit("(launch unknown)"))
        .otherwise(pl.lit(above, dtype=pl.String))
        + _SEPARATOR
        + pl.col("name").str.replace_all(_SEPARATOR, ","),
        self_ns=pl.lit(0, pl.Int64),
        device_ns=pl.col("dur_ns"),
        count=pl.lit(1, pl.Int64),
    )
    found = pl.concat([host.select(device.columns), device]).group_by("stack").agg(pl.all().sum())
    found = found.filter((pl.col("self_ns") > 0) | (pl.col("device_ns") > 0))
    return found.sort("device_ns", "self_ns", "stack", descending=[True, True, False])


def _paths(parent: Longs, depth: Longs, names: list[str]) -> tuple[Longs, list[str]]:
    """Index of the stack of every row, and the stacks."""
    path = np.full(len(names), -1, np.int64)
    known: dict[tuple[int, str], int] = {}
    paths: list[str] = []
    for row in np.argsort(depth, kind="stable").tolist():
        above = int(path[parent[row]]) if parent[row] >= 0 else -1
        name = names[row].replace(_SEPARATOR, ",")
        index = known.setdefault((above, name), len(paths))
        if index == len(paths):
            paths.append(f"{paths[above]}{_SEPARATOR}{name}" if above >= 0 else name)
        path[row] = index
    return path, paths
