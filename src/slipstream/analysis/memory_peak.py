"""What was in use at the peak, by the phase and the op that allocated it."""

import polars as pl

from slipstream.analysis.allocations import DEVICE, allocation_changes
from slipstream.analysis.window_rows import window_span
from slipstream.model import NotEnoughData
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``memory_peak``, device by device, the most first.

    Raises:
        NotEnoughData: memory was not recorded, or without addresses.
    """
    changes = allocation_changes(tables)
    if changes["address"].null_count() == changes.height:
        raise NotEnoughData("memory was recorded without addresses, so what was in use at the peak is not known")
    described = tables["memory_timeline"].select("event", pl.col("op", "phase").cast(pl.String))
    changes = changes.join(described, on="event", maintain_order="left")
    start, end = window_span(tables)
    parts = [_of_device(mine, start, end) for _, mine in changes.group_by(*DEVICE, maintain_order=True)]
    found = pl.concat([part for part in parts if part is not None] or [changes.clear().select(*DEVICE)])
    if not found.height:
        raise NotEnoughData("memory did not change in the window")
    keys = (*DEVICE, "live_bytes", "phase", "op")
    return found.sort(*keys, descending=[False, False, True, False, False], nulls_last=True)


def _of_device(changes: pl.DataFrame, start: int, end: int) -> pl.DataFrame | None:
    inside = changes.filter(pl.col("ts_ns").is_between(start, end))
    if not inside.height:
        return None
    place, peak_ns, peak = (
        inside.sort("allocated_bytes", "place", descending=[True, False])
        .select("place", "ts_ns", "allocated_bytes")
        .row(0)
    )
    live = changes.filter(
        (pl.col("size_bytes") > 0)
        & (pl.col("place") <= place)
        & (pl.col("freed_place").is_null() | (pl.col("freed_place") > place))
    )
    groups = live.group_by(*DEVICE, "phase", "op").agg(
        pl.len().cast(pl.Int64).alias("count"), pl.col("size_bytes").sum().alias("live_bytes")
    )
    groups = groups.with_columns(origin=pl.lit("recording"))
    before = changes.head(1).select(
        *DEVICE,
        origin=pl.lit("before_recording"),
        live_bytes=pl.lit(peak - int(live["size_bytes"].sum()), pl.Int64),
    )
    whole = pl.concat([groups, before], how="diagonal")
    share = pl.col("live_bytes") / peak if peak > 0 else pl.lit(None, pl.Float64)
    return whole.with_columns(peak_ns=pl.lit(peak_ns, pl.Int64), peak_bytes=pl.lit(peak, pl.Int64), share=share)
