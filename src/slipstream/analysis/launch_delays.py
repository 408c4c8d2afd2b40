"""Time from a launch to the start of its work."""

import numpy as np
import polars as pl

from slipstream.analysis.intervals import union
from slipstream.analysis.launch_queue import entries
from slipstream.analysis.window_rows import starting_in_window
from slipstream.model import NotEnoughData
from slipstream.store import Tables

_GROUP = ("device", "stream", "kind")


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``launch_delays``, by device, stream and kind.

    Raises:
        NotEnoughData: no device work with a known launch.
    """
    work = tables["device_work"]
    waiting = entries(tables)
    if not waiting.height:
        raise NotEnoughData(
            "no device work with a known launch in this recording: record host and device together "
            "(ProfilerActivity.CPU and ProfilerActivity.CUDA)"
        )
    launches = starting_in_window(tables, waiting.with_columns(queued=_queued(work, waiting)), "since_ns")
    delay = pl.col("until_ns") - pl.col("since_ns")
    short = pl.col("kind").is_in(["kernel", "collective"]) & (pl.col("dur_ns") < pl.col("call_ns"))
    stats = launches.group_by(*_GROUP).agg(
        pl.len().alias("count"),
        delay.mean().alias("mean_ns"),
        delay.median().alias("median_ns"),
        delay.max().alias("max_ns"),
        delay.std(ddof=0).alias("std_ns"),
        pl.col("queued").sum(),
        delay.filter(~pl.col("queued")).median().alias("latency_median_ns"),
        pl.col("call_ns").median().alias("call_median_ns"),
        short.sum().alias("short"),
    )
    unlinked = starting_in_window(tables, work.filter(pl.col("launch_event").is_null()))
    missing = unlinked.group_by(*_GROUP).agg(pl.len().alias("unlinked"))
    found = stats.join(missing, on=_GROUP, how="full", coalesce=True, nulls_equal=True)
    counts = pl.col("count", "unlinked", "queued", "short").fill_null(0)
    return found.with_columns(counts).sort(*_GROUP[:2], pl.col("kind").cast(pl.String), nulls_last=True)


def _queued(work: pl.DataFrame, launches: pl.DataFrame) -> pl.Series:
    """Whether the stream still had work before it, running or waiting, when each launch began."""
    found = np.zeros(launches.height, bool)
    places = launches.with_row_index("place").select("place", "device", "stream", "since_ns", "until_ns")
    for (device, stream), mine in places.group_by("device", "stream", maintain_order=True):
        rows = work.filter(
            pl.col("device").eq_missing(pl.lit(device, pl.Int32))
            & pl.col("stream").eq_missing(pl.lit(stream, pl.Int64))
        )
        begin = rows["ts_ns"].to_numpy()
        busy = union(begin, begin + rows["dur_ns"].to_numpy())
        since, until = mine["since_ns"].to_numpy(), mine["until_ns"].to_numpy()
        # Something ends after the launch began and started before the launched work did.
        ended = np.searchsorted(busy.end, since, side="right")
        next_start = np.append(busy.start, np.iinfo(np.int64).max)[ended]
        found[mine["place"].to_numpy()] = next_start < until
    return pl.Series(found)
