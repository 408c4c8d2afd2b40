"""Changes of memory in use, each allocation with its release."""

import polars as pl

from slipstream.model import NotEnoughData
from slipstream.store import Tables

DEVICE = ("device_type", "device")


def allocation_changes(tables: Tables) -> pl.DataFrame:
    """Memory rows in order of time with ``place`` (position in that order), running totals and releases.

    Returns:
        The columns of ``memory`` with allocated_bytes filled, and place, relative, freed_ns, freed_place (null: a
        release, never released in the recording, or no address).
    Raises:
        NotEnoughData: memory was not recorded.
    """
    rows = tables["memory"]
    if not rows.height:
        raise NotEnoughData("memory was not recorded: record with profile_memory=True")
    rows = rows.sort("ts_ns", "event").with_row_index("place")
    told = pl.col("allocated_bytes").is_not_null().any().over(DEVICE)
    rows = rows.with_columns(
        relative=~told,
        allocated_bytes=pl.when(told)
        .then(pl.col("allocated_bytes").forward_fill().over(DEVICE))
        .otherwise(pl.col("size_bytes").cum_sum().over(DEVICE)),
    )
    block = [*DEVICE, "address"]
    released = (
        (pl.col("size_bytes") > 0)
        & pl.col("address").is_not_null()
        & (pl.col("size_bytes").shift(-1).over(block) == -pl.col("size_bytes"))
    )
    return rows.with_columns(
        freed_ns=pl.when(released).then(pl.col("ts_ns").shift(-1).over(block)),
        freed_place=pl.when(released).then(pl.col("place").shift(-1).over(block)),
    )
