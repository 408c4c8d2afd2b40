"""Kernels, copies and fills of the window by name, shapes, module and place."""

import polars as pl

from slipstream.analysis.op_groups import PLACE, described_ops
from slipstream.analysis.window_rows import starting_in_window
from slipstream.model import NotEnoughData
from slipstream.store import Tables

GROUP = ("name", "kind", "op", "input_dims", "input_types", "module", *PLACE)


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``kernel_groups``, the costliest first.

    Raises:
        NotEnoughData: no device work in the recording.
    """
    work = tables["device_work"]
    if not work.height:
        raise NotEnoughData(
            "no device work in this recording: where there is a device, record with its activity as well "
            "(ProfilerActivity.CUDA)"
        )
    ops = described_ops(tables).rename({"event": "op_event", "name": "op"}).drop("ts_ns", "dur_ns")
    rows = starting_in_window(tables, work).join(ops, on="op_event", how="left", maintain_order="left")
    dur = pl.col("dur_ns")
    whole = int(rows["dur_ns"].sum())
    stats = rows.group_by(*GROUP).agg(
        pl.len().alias("count"),
        dur.sum().alias("sum_ns"),
        dur.mean().alias("mean_ns"),
        dur.median().alias("median_ns"),
        dur.max().alias("max_ns"),
        dur.std(ddof=0).alias("std_ns"),
    )
    texts = [pl.col(name).cast(pl.String) for name in ("name", "op", "input_dims", "module", "file")]
    found = stats.with_columns(share=pl.col("sum_ns") / whole if whole else pl.lit(0.0))
    return found.sort("sum_ns", "count", *texts, "line", descending=[True, True, *(False for _ in range(6))])
