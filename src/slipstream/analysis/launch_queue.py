"""Launches of each stream as they wait in its queue."""

import polars as pl

from slipstream.store import Tables


def entries(tables: Tables) -> pl.DataFrame:
    """One row per launch and stream it put work on: a replayed graph is one entry, however many kernels it holds.

    Returns:
        device, stream, kind of the first work, event of the launch, since_ns (start of the call, never after the
        start of the work), until_ns (start of the first work), call_ns (duration of the call), thread, dur_ns of the
        first work; by start of the call.
    """
    linked = tables["device_work"].drop_nulls("launch_event").sort("ts_ns", "event")
    first = linked.unique(["launch_event", "device", "stream"], keep="first", maintain_order=True)
    found = first.select(
        "device",
        "stream",
        "kind",
        "launch_event",
        pl.min_horizontal("launch_ts_ns", "ts_ns").alias("since_ns"),
        pl.col("ts_ns").alias("until_ns"),
        pl.col("launch_dur_ns").alias("call_ns"),
        pl.col("launch_thread").alias("thread"),
        "dur_ns",
    )
    return found.sort("since_ns", "launch_event")
