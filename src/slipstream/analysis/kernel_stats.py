"""Kernels, copies and sets of the window by name."""

import polars as pl

from slipstream.analysis.ranking import costliest_places, ranked
from slipstream.model import NotEnoughData
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``kernel_stats``, the most costly first; what starts in the window belongs to it.

    Raises:
        NotEnoughData: no device work in the recording.
    """
    work = tables["device_work"]
    if not work.height:
        raise NotEnoughData(
            "no device work in this recording: where there is a device, record with its activity as well "
            "(ProfilerActivity.CUDA)"
        )
    window = tables.row("window")
    rows = work.filter(pl.col("ts_ns").is_between(pl.lit(window["start_ns"]), pl.lit(window["end_ns"]), closed="left"))
    rows = rows.with_columns(pl.col("name").cast(pl.String))
    stats = rows.group_by("name", "kind").agg(
        pl.len().alias("count"), pl.col("dur_ns").sum().alias("self_ns"), pl.col("dur_ns").mean().alias("mean_ns")
    )
    places = costliest_places(tables, rows.select("name", "op_event", cost_ns="dur_ns"))
    return ranked(stats.join(places, on="name", how="left"))
