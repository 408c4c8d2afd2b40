"""Communication by operation and group, and what of it no compute hides."""

import polars as pl

from slipstream.analysis.intervals import Intervals, clip, difference, length, union
from slipstream.analysis.window_rows import known_device_work, window_span
from slipstream.store import Tables

_GROUP = ("device", "operation", "group_name", "group_size", "dtype")


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``exposed_collectives``, the most exposed first; no rows where nothing communicated.

    Raises:
        NotEnoughData: no device work in the recording, or what the device did is not known.
    """
    work = known_device_work(tables)
    start, end = window_span(tables)
    work = work.filter((pl.col("ts_ns") < end) & (pl.col("ts_ns") + pl.col("dur_ns") > start))
    told = tables["collectives"].drop("source", "group_ranks", "sequence")
    kernels = work.filter(pl.col("kind") == "collective").join(told, on="event", how="left", maintain_order="left")
    rows = []
    for key, mine in kernels.group_by(*_GROUP, maintain_order=True):
        compute = work.filter(pl.col("kind").is_in(["kernel"]) & pl.col("device").eq_missing(pl.lit(key[0], pl.Int32)))
        comm = _moments(mine, start, end)
        exposed = length(difference(comm, _moments(compute, start, end)))
        rows.append(
            {
                **dict(zip(_GROUP, key, strict=True)),
                "count": mine.height,
                **{name: mine[name].sum() if mine[name].count() else None for name in ("in_elements", "out_elements")},
                "sum_ns": int(mine["dur_ns"].sum()),
                "comm_ns": length(comm),
                "exposed_ns": exposed,
                "exposed_share": exposed / length(comm) if length(comm) else None,
            }
        )
    return (
        pl.DataFrame(rows, infer_schema_length=None).sort(
            "exposed_ns", "sum_ns", "operation", descending=[True, True, False]
        )
        if rows
        else pl.DataFrame()
    )


def _moments(rows: pl.DataFrame, start: int, end: int) -> Intervals:
    begin = rows["ts_ns"].to_numpy()
    return clip(union(begin, begin + rows["dur_ns"].to_numpy()), start, end)
