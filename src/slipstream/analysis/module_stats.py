"""The tree of modules: calls, time on the host and of the device, with and without children."""

import numpy as np
import polars as pl

from slipstream.analysis.module_calls import module_calls
from slipstream.analysis.window_rows import starting_in_window
from slipstream.store import Tables

_WORK = ("device_self_ns", "backward_device_self_ns")


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``module_stats``: parents before children, the costliest first, no module last.

    Raises:
        NotEnoughData: the recording shows no modules.
    """
    owners = tables["op_modules"].with_columns(pl.col("module", "basis").cast(pl.String))
    from_rows = "rows" in owners["basis"]
    host = _of_calls(tables) if from_rows else _of_ops(tables, owners)
    device = tables["device_work"]
    if device.height:
        host = host.join(_device(tables, owners, from_rows), on="module", how="full", coalesce=True, nulls_equal=True)
        host = host.with_columns(pl.col(*_WORK).fill_null(0))
    else:
        host = host.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _WORK)
    found = _with_tree(host, device.height > 0)
    order = [pl.col("depth"), pl.col("device_total_ns").fill_null(0) + pl.col("backward_device_total_ns").fill_null(0)]
    by = [*order, pl.col("host_total_ns"), pl.col("module")]
    return found.sort(*by, descending=[False, True, True, False], nulls_last=True)


def _of_calls(tables: Tables) -> pl.DataFrame:
    """Calls of the window by path."""
    calls = module_calls(tables)
    rows = calls.rows.with_columns(
        module=pl.Series(calls.paths, dtype=pl.String).gather(calls.path.tolist()),
        self_ns=pl.Series(calls.nesting.self_ns),
    )
    return (
        starting_in_window(tables, rows)
        .group_by("module")
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            pl.col("dur_ns").sum().alias("host_total_ns"),
            pl.col("self_ns").sum().alias("host_self_ns"),
        )
    )


def _of_ops(tables: Tables, owners: pl.DataFrame) -> pl.DataFrame:
    """Time of the window's ops by path, as far as stacks tell; the totals follow from the tree."""
    tree = tables["op_tree"].select("event", "self_ns")
    ops = starting_in_window(tables, tables["ops"].select("event", "ts_ns"))
    rows = ops.join(owners.filter(~pl.col("backward")), on="event").join(tree, on="event").drop_nulls("module")
    sums = rows.group_by("module").agg(pl.col("self_ns").sum().alias("host_self_ns"))
    return sums.with_columns(calls=pl.lit(None, pl.Int64), host_total_ns=pl.lit(None, pl.Int64))


def _device(tables: Tables, owners: pl.DataFrame, from_rows: bool) -> pl.DataFrame:
    """Device work of the window by path, forward and backward apart; a null path for what belongs to no module."""
    work = starting_in_window(tables, tables["device_work"]).select(
        "op_event", "launch_thread", "launch_ts_ns", "dur_ns"
    )
    work = work.join(owners.rename({"event": "op_event"}), on="op_event", how="left", maintain_order="left")
    module = work["module"]
    if from_rows:
        # Kernels that no op launched (compiled code) lie in a module call all the same.
        calls = module_calls(tables)
        index = calls.nesting.innermost(
            work["launch_thread"].fill_null(-2).to_numpy(), work["launch_ts_ns"].fill_null(-1).to_numpy()
        )
        around = pl.Series(np.append(calls.path, -1)[index]).replace(-1, None)
        module = pl.select(pl.coalesce(module, pl.Series(calls.paths, dtype=pl.String).gather(around))).to_series()
    backward = pl.col("backward").fill_null(False)
    return (
        work.with_columns(module=module)
        .group_by("module")
        .agg(
            pl.col("dur_ns").filter(~backward).sum().alias("device_self_ns"),
            pl.col("dur_ns").filter(backward).sum().alias("backward_device_self_ns"),
        )
    )


def _with_tree(rows: pl.DataFrame, on_device: bool) -> pl.DataFrame:
    """Adds parents without rows of their own, and what is inside each path."""
    paths = rows["module"].drop_nulls().to_list()
    around = {
        "/".join(parts[:depth]) for parts in (path.split("/") for path in paths) for depth in range(1, len(parts))
    }
    missing = sorted(around - set(paths))
    rows = pl.concat([rows, pl.DataFrame({"module": missing}, schema={"module": pl.String})], how="diagonal")
    if on_device:
        rows = rows.with_columns(pl.col(*_WORK).fill_null(0))
    pairs = pl.DataFrame(
        [
            ("/".join(parts[:depth]), path)
            for path in rows["module"].drop_nulls()
            for parts in [path.split("/")]
            for depth in range(1, len(parts) + 1)
        ],
        schema={"module": pl.String, "inner": pl.String},
        orient="row",
    )
    inner = pairs.join(rows.rename({"module": "inner"}), on="inner")
    totals = inner.group_by("module").agg(
        pl.col("device_self_ns").sum().alias("device_total_ns"),
        pl.col("backward_device_self_ns").sum().alias("backward_device_total_ns"),
        pl.col("host_self_ns").sum().alias("host_inner_ns"),
    )
    rows = rows.join(totals, on="module", how="left")
    last = pl.col("module").str.split("/")
    no_module = pl.col("module").is_null()
    found = rows.with_columns(
        pl.coalesce("host_total_ns", pl.when(~no_module).then("host_inner_ns")).alias("host_total_ns"),
        pl.when(~no_module).then(pl.col("host_self_ns").fill_null(0)).alias("host_self_ns"),
        depth=last.list.len().cast(pl.Int32) - 1,
        name=last.list.last(),
        parent=last.list.head(last.list.len() - 1).list.join("/").replace("", None),
        device_total_ns=pl.coalesce("device_total_ns", pl.when(no_module).then("device_self_ns")),
        backward_device_total_ns=pl.coalesce(
            "backward_device_total_ns", pl.when(no_module).then("backward_device_self_ns")
        ),
    ).drop("host_inner_ns")
    return (
        found
        if on_device
        else found.with_columns(
            pl.lit(None, pl.Int64).alias(name) for name in ("device_total_ns", "backward_device_total_ns")
        )
    )
