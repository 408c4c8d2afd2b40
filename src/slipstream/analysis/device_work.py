"""Kernels, copies and sets in one table, each with the host call that launched it.

A launch is found by correlation first (a replayed graph has one launch for all its kernels), by the arrow drawn from
it second. Of two launches with one correlation it is the last that started before the work did.
"""

import numpy as np
import polars as pl

from slipstream.analysis.nesting import Longs, nesting_of
from slipstream.analysis.step_marks import step_at
from slipstream.store import Tables, Trace

LAUNCH = r"(?i)launch([^h]|$)"
"""Runtime calls that put kernels on the device, of any vendor, graphs too; not ``LaunchHostFunc``."""
_ROW = ("event", "name", "device", "stream", "ts_ns", "dur_ns", "correlation", "external_id")
_LAUNCH = {"launch_event": pl.UInt32, "launch_ts_ns": pl.Int64, "launch_dur_ns": pl.Int64, "launch_thread": pl.Int32}


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``device_work``, in order of time."""
    trace = tables.trace
    work = _device_rows(trace)
    launches = _by_correlation(trace, work)
    unlinked = work.join(launches, on="event", how="anti")
    launches = pl.concat([launches, _by_flow(trace, unlinked)])
    work = work.join(launches, on="event", how="left").sort("ts_ns", "event")
    work = work.with_columns(op_event=_ops_around(trace, work))
    return work.drop("correlation", "external_id", "caller_id").with_columns(
        step_launched=_steps_of(tables, work["launch_ts_ns"]), step_ran=_steps_of(tables, work["ts_ns"])
    )


def analysed_device(work: pl.DataFrame) -> int | None:
    """The device with most work: where one process drives several, it is the one whose busy time is told.

    Args:
        work: the table ``device_work``.
    Returns:
        Its ordinal; None when no row tells a device.
    """
    sums = work.drop_nulls("device").group_by("device").agg(pl.col("dur_ns").sum())
    best = sums.sort("dur_ns", "device", descending=[True, False])["device"]
    return int(best[0]) if len(best) else None


def _device_rows(trace: Trace) -> pl.DataFrame:
    collective = pl.when("collective").then(pl.lit("collective")).otherwise(pl.lit("kernel"))
    parts = [
        trace.kernels.select(*_ROW, kind=collective),
        trace.copies.select(*_ROW, kind=pl.lit("copy")),
        trace.sets.select(*_ROW, kind=pl.lit("set")),
    ]
    return pl.concat(parts)


def _as_launches(runtime: pl.DataFrame) -> pl.DataFrame:
    return runtime.select(
        pl.col("event").alias("launch_event"),
        pl.col("ts_ns").alias("launch_ts_ns"),
        pl.col("dur_ns").alias("launch_dur_ns"),
        pl.col("thread").alias("launch_thread"),
        pl.col("external_id").alias("caller_id"),
        "correlation",
    )


def _by_correlation(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Launches of the rows whose correlation a runtime row shares."""
    known = pl.col("correlation").is_not_null() & (pl.col("correlation") != 0)
    launches = _as_launches(trace.runtime.filter(known)).sort("launch_ts_ns", "launch_event")
    rows = work.filter(known).select("event", "ts_ns", "correlation").sort("ts_ns")
    found = rows.join_asof(
        launches, left_on="ts_ns", right_on="launch_ts_ns", by="correlation", check_sortedness=False, coalesce=False
    )
    # Clocks of host and device may disagree: a lone launch that seems to come after its kernel is its launch still.
    late = found.filter(pl.col("launch_event").is_null()).select("event", "correlation")
    first = launches.unique("correlation", keep="first", maintain_order=True)
    linked = [found.filter(pl.col("launch_event").is_not_null()), late.join(first, on="correlation")]
    return pl.concat([part.select("event", *_LAUNCH, "caller_id") for part in linked])


def _by_flow(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """Launches of the rows that an arrow from a runtime row leads to."""
    arrows = trace.flows.filter(pl.col("kind").cast(pl.String) != "fwdbwd").drop_nulls("flow_id")
    heads = arrows.filter(~pl.col("start")).select("flow_id", "thread", "ts_ns")
    tails = arrows.filter("start").select("flow_id", "thread", "ts_ns")
    launches = _as_launches(trace.runtime.drop_nulls("thread")).with_columns(ts_ns=pl.col("launch_ts_ns"))
    launches = launches.sort("launch_dur_ns", descending=True).unique(
        ["launch_thread", "ts_ns"], keep="first", maintain_order=True
    )
    rows = work.select("event", "ts_ns").join(trace.events.select("event", "thread"), on="event")
    found = (
        rows.join(heads, on=["thread", "ts_ns"])
        .select("event", "flow_id", pl.col("ts_ns").alias("ran_ns"))
        .join(tails, on="flow_id")
        .join(launches, left_on=["thread", "ts_ns"], right_on=["launch_thread", "ts_ns"], coalesce=False)
    )
    before = (pl.col("launch_ts_ns") <= pl.col("ran_ns")).alias("before")
    found = found.with_columns(before).sort("before", "launch_ts_ns", descending=True)
    found = found.unique("event", keep="first", maintain_order=True)
    return found.select("event", *_LAUNCH, "caller_id")


def _ops_around(trace: Trace, work: pl.DataFrame) -> pl.Series:
    """The innermost op around each launch, else the op whose id the device row or its launch carries."""
    launched = work.with_row_index("place").drop_nulls("launch_thread")
    nesting = nesting_of(trace, "ops")
    index = np.full(work.height, -1, np.int64)
    index[launched["place"].to_numpy()] = nesting.innermost(
        launched["launch_thread"].to_numpy(), launched["launch_ts_ns"].to_numpy()
    )
    around = _events_at(trace.ops, index)
    ids = trace.ops.filter(pl.col("external_id").is_not_null() & (pl.col("external_id") != 0))
    ids = ids.unique("external_id", keep="first", maintain_order=True).select("external_id", named="event")
    named = work.select(pl.coalesce("external_id", "caller_id").alias("external_id")).join(
        ids, on="external_id", how="left", maintain_order="left"
    )["named"]
    return pl.select(pl.coalesce(around, named)).to_series()


def _events_at(rows: pl.DataFrame, index: Longs) -> pl.Series:
    """Events of the rows at each index, null for -1."""
    return rows["event"].gather(pl.Series(index).replace(-1, None))


def _steps_of(tables: Tables, position: pl.Series) -> pl.Series:
    steps = step_at(tables, position.fill_null(0).to_numpy())
    return pl.select(pl.when(position.is_not_null()).then(steps)).to_series()
