"""Copies by kind, with the bandwidth they reached."""

import polars as pl

from slipstream.analysis.window_rows import starting_in_window
from slipstream.model import NotEnoughData
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``copy_bandwidth``, the longest first; no rows where a device worked and copied nothing.

    Raises:
        NotEnoughData: no device work in the recording.
    """
    if not tables["device_work"].height:
        raise NotEnoughData(
            "no device work in this recording: where there is a device, record with its activity as well "
            "(ProfilerActivity.CUDA)"
        )
    copies = starting_in_window(tables, tables["copies"])
    # A byte per nanosecond is 10^9 bytes per second.
    measured = (pl.col("dur_ns") > 0) & pl.col("size_bytes").is_not_null()
    single = pl.col("size_bytes").filter(measured) / pl.col("dur_ns").filter(measured)
    told = pl.col("size_bytes").count() > 0
    stats = copies.group_by("device", "kind", "pageable").agg(
        pl.len().alias("count"),
        (~measured).sum().alias("unmeasured"),
        pl.when(told).then(pl.col("size_bytes").sum()).alias("size_bytes"),
        pl.col("dur_ns").sum().alias("sum_ns"),
        pl.when(measured.any())
        .then(pl.col("size_bytes").filter(measured).sum() / pl.col("dur_ns").filter(measured).sum())
        .alias("bw_gbps"),
        single.median().alias("median_bw_gbps"),
        single.max().alias("max_bw_gbps"),
    )
    order = [pl.col("sum_ns"), pl.col("count"), pl.col("kind").cast(pl.String)]
    return stats.sort(*order, descending=[True, True, False])
