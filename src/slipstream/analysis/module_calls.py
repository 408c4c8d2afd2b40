"""Calls of modules, nested, with the path of each."""

import msgspec
import numpy as np
import polars as pl

from slipstream.analysis.nesting import Longs, Nesting, nest
from slipstream.store import Tables

PREFIX = "nn.Module: "


class ModuleCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Calls in the order of the table ``python``."""

    rows: pl.DataFrame
    """event, thread, ts_ns, dur_ns"""
    nesting: Nesting
    path: Longs
    """index into ``paths``, one per call"""
    paths: tuple[str, ...]


def module_calls(tables: Tables) -> ModuleCalls:
    """All calls of modules that the recording's Python rows show; possibly none."""
    python = tables["python"]
    names = python["name"].unique().cast(pl.String)
    modules = names.filter(names.str.starts_with(PREFIX))
    rows = python.filter(pl.col("name").cast(pl.String).is_in(modules.implode()))
    start = rows["ts_ns"].to_numpy()
    tie = rows["python_id"].fill_null(0).to_numpy()
    nesting = nest(rows["thread"].fill_null(-1).to_numpy(), start, start + rows["dur_ns"].to_numpy(), tie)
    name = rows["name"].cast(pl.String).str.strip_prefix(PREFIX).str.strip_chars().to_list()
    path = np.full(rows.height, -1, np.int64)
    known: dict[tuple[int, str], int] = {}
    paths: list[str] = []
    for call in np.argsort(nesting.depth, kind="stable").tolist():
        parent = int(nesting.parent[call])
        around = int(path[parent]) if parent >= 0 else -1
        key = (around, name[call])
        if key not in known:
            known[key] = len(paths)
            paths.append(f"{paths[around]}/{name[call]}" if around >= 0 else name[call])
        path[call] = known[key]
    return ModuleCalls(
        rows=rows.select("event", "thread", "ts_ns", "dur_ns"), nesting=nesting, path=path, paths=tuple(paths)
    )
