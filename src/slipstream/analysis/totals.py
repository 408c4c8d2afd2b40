"""Sums and unions of intervals over the whole file, exact to the nanosecond."""

import polars as pl

from slipstream.analysis.intervals import Intervals, difference, length, union
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``totals``; device times are null where there was no device work.

    Source: the JSON contract, docs/metrics.md.
    """
    kernels, copies, sets = tables["kernels"], tables["copies"], tables["sets"]
    devices = [rows.select("ts_ns", "dur_ns") for rows in (kernels, copies, sets)]
    everything = pl.concat(devices)
    counts = {"events": tables.trace.element_count, "gpu_events": everything.height, "kernels": kernels.height}
    if not everything.height:
        return pl.DataFrame({name: [count] for name, count in counts.items()})
    comm = _moments(kernels.filter("collective"))
    compute = _moments(kernels.filter(~pl.col("collective")))
    memcpy = _moments(copies)
    times = {
        "gpu_sum_ns": int(everything["dur_ns"].sum()),
        "gpu_busy_ns": length(_moments(everything)),
        "kernel_sum_ns": int(kernels["dur_ns"].sum()),
        "comm_ns": length(comm),
        "exposed_comm_ns": length(difference(comm, compute)),
        "memcpy_ns": length(memcpy),
        "exposed_memcpy_ns": length(difference(memcpy, _moments(kernels))),
    }
    return pl.DataFrame({name: [value] for name, value in (counts | times).items()})


def _moments(rows: pl.DataFrame) -> Intervals:
    return union(rows["ts_ns"].to_numpy(), (rows["ts_ns"] + rows["dur_ns"]).to_numpy())
