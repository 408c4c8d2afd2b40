"""Length of each stream's queue over time."""

import polars as pl

from slipstream.analysis.launch_queue import entries
from slipstream.model import NotEnoughData
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``queue_depths``, stream by stream in order of time.

    Raises:
        NotEnoughData: no device work with a known launch.
    """
    waiting = entries(tables)
    if not waiting.height:
        raise NotEnoughData(
            "no device work with a known launch in this recording: record host and device together "
            "(ProfilerActivity.CPU and ProfilerActivity.CUDA)"
        )
    stream = ["device", "stream"]
    changes = pl.concat(
        [
            waiting.select(*stream, pl.col("since_ns").alias("ts_ns"), change=pl.lit(1, pl.Int64)),
            waiting.select(*stream, pl.col("until_ns").alias("ts_ns"), change=pl.lit(-1, pl.Int64)),
        ]
    )
    changes = changes.group_by(*stream, "ts_ns").agg(pl.col("change").sum()).sort(*stream, "ts_ns", nulls_last=True)
    changes = changes.filter(pl.col("change") != 0)
    return changes.select(*stream, "ts_ns", depth=pl.col("change").cum_sum().over(stream))
