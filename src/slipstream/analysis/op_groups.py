"""Ops of the window by name, shapes, module and place."""

import numpy as np
import polars as pl

from slipstream.analysis.nesting import nesting_of
from slipstream.analysis.op_shapes import compact
from slipstream.analysis.op_stats import outermost_of_their_name
from slipstream.analysis.window_rows import starting_in_window, window_span
from slipstream.store import Tables

PLACE = ("file", "line", "function", "precision")
GROUP = ("name", "input_dims", "input_types", "module", *PLACE)


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``op_groups``, the costliest first (by own device time, without a device by own time)."""
    linked = tables["device_work"]["op_event"].count() > 0
    ops = described_ops(tables).with_columns(
        *(tables["op_tree"][name] for name in ("self_ns", "device_self_ns", "device_total_ns"))
    )
    rows = starting_in_window(tables, ops.with_columns(pl.Series("outermost", _outermost(tables, ops))))
    host, device = pl.col("dur_ns"), pl.col("device_total_ns")
    outermost = pl.col("outermost")
    stats = rows.group_by(*GROUP).agg(
        pl.len().alias("count"),
        host.filter(outermost).sum().alias("host_total_ns"),
        pl.col("self_ns").sum().alias("host_self_ns"),
        host.mean().alias("mean_ns"),
        host.median().alias("median_ns"),
        host.max().alias("max_ns"),
        host.std(ddof=0).alias("std_ns"),
        device.filter(outermost).sum().alias("device_total_sum_ns"),
        pl.col("device_self_ns").sum(),
        device.mean().alias("device_mean_ns"),
        device.median().alias("device_median_ns"),
        device.max().alias("device_max_ns"),
        device.std(ddof=0).alias("device_std_ns"),
    )
    stats = stats.rename({"device_total_sum_ns": "device_total_ns"})
    if not linked:
        stats = stats.with_columns(pl.lit(None).alias(name) for name in stats.columns if name.startswith("device_"))
    cost = "device_self_ns" if linked else "host_self_ns"
    texts = [pl.col(name).cast(pl.String) for name in ("name", "input_dims", "module", "file")]
    return stats.sort(cost, "host_total_ns", *texts, "line", descending=[True, True, *(False for _ in range(5))])


def described_ops(tables: Tables) -> pl.DataFrame:
    """Every op with the columns of its group: name, shapes and types, module, place; in the order of ``ops``."""
    ops = tables["ops"].select("event", "name", "ts_ns", "dur_ns", "input_dims", "input_types")
    ops = ops.with_columns(compact(ops["input_dims"]), compact(ops["input_types"]))
    ops = ops.hstack(tables["op_places"].select(*PLACE))
    if not tables.has("op_modules"):
        return ops.with_columns(module=pl.lit(None, pl.String))
    return ops.with_columns(tables["op_modules"]["module"])


def _outermost(tables: Tables, ops: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each op has no op of its group around it."""
    groups = ops.select(*GROUP).unique(maintain_order=True).with_row_index("group")
    group = ops.join(groups, on=GROUP, how="left", nulls_equal=True, maintain_order="left")["group"].to_numpy()
    start, end = window_span(tables)
    within = ops["ts_ns"].is_between(start, end, closed="left").to_numpy()
    # What lies outside the window has a group of its own, so that it is never around another of its group.
    codes = np.where(within, group.astype(np.int64), -1 - np.arange(len(group)))
    return outermost_of_their_name(codes, nesting_of(tables.trace, "ops"))
