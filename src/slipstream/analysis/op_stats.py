"""Ops of the window by name: calls, time, and where the most costly of them come from."""

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.nesting import Nesting, nesting_of
from slipstream.analysis.ranking import costliest_places, ranked
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``op_stats``, the most costly first.

    An op belongs to the window when it starts in it. Time of an op inside another of the same name counts once.
    Where no device work is linked to any op, device time is unknown and own time on the host ranks.
    """
    window = tables.row("window")
    linked = tables["device_work"]["op_event"].count() > 0
    ops = tables["ops"].select("event", pl.col("name").cast(pl.String), "ts_ns", "dur_ns")
    tree = tables["op_tree"].select("event", "self_ns", "device_self_ns")
    within = ops["ts_ns"].is_between(pl.lit(window["start_ns"]), pl.lit(window["end_ns"]), closed="left").to_numpy()
    # What lies outside the window has a name of its own, so that it is never the outermost of another.
    names = np.where(
        within, tables["ops"]["name"].to_physical().to_numpy().astype(np.int64), -1 - np.arange(len(within))
    )
    outermost = outermost_of_their_name(names, nesting_of(tables.trace, "ops"))
    rows = ops.with_columns(pl.Series("outermost", outermost)).join(tree, on="event", maintain_order="left")
    rows = rows.filter(pl.Series(within))
    cost = "device_self_ns" if linked else "self_ns"
    stats = rows.group_by("name").agg(
        pl.len().alias("count"),
        pl.col("self_ns").sum().alias("host_self_ns"),
        pl.col("dur_ns").filter("outermost").sum().alias("host_total_ns"),
        pl.col("device_self_ns").sum() if linked else pl.lit(None, pl.Int64).alias("device_self_ns"),
        pl.col(cost).sum().alias("cost_ns"),
    )
    places = costliest_places(tables, rows.select("name", op_event="event", cost_ns=cost))
    return ranked(stats.rename({"cost_ns": "self_ns"}).join(places, on="name", how="left"))


def outermost_of_their_name(names: npt.NDArray[np.integer], nesting: Nesting) -> npt.NDArray[np.bool_]:
    """Whether no span around each has its name.

    Args:
        names: a number for the name of each span.
        nesting: of the spans.
    """
    outermost = np.ones(len(names), bool)
    below = np.flatnonzero(nesting.parent >= 0)
    around = nesting.parent[below]
    while len(below):
        outermost[below[names[around] == names[below]]] = False
        around = nesting.parent[around]
        going_on = (around >= 0) & outermost[below]
        below, around = below[going_on], around[going_on]
    return outermost
