"""How well kernels fill the device: estimates from their launch arguments."""

import math

import msgspec
import polars as pl

from slipstream.analysis.window_rows import starting_in_window
from slipstream.model import NotEnoughData
from slipstream.model.device_limits import DeviceLimits, limits_of
from slipstream.store import Tables

REGISTER_UNIT = 256
"""Registers are given to warps in units of that many."""
WARP_UNIT = 4
"""Warps that registers allow are counted in groups of that many, one for each part of a multiprocessor."""
_CONFIGURATION = ("name", "grid", "block", "registers", "shared_bytes")
_ESTIMATES = ("blocks", "threads", "resident_share", "sm_share", "waves", "tail_share")


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """One launch on a device; None: not known."""

    blocks: float | None
    threads: float | None
    resident_share: float | None = None
    limit: str | None = None
    sm_share: float | None = None
    waves: float | None = None
    tail_share: float | None = None


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``occupancy``, the longest first.

    Raises:
        NotEnoughData: no kernel of the window carries its launch arguments.
    """
    kernels = starting_in_window(tables, tables["kernels"])
    if not kernels.height or kernels["grid"].null_count() == kernels.height:
        raise NotEnoughData("no kernel of the window carries its launch arguments (grid and block)")
    limits = limits_of(tables.source.device)
    processors = limits.multiprocessors if limits else _told_multiprocessors(kernels)
    kernels = kernels.with_columns(pl.col("name").cast(pl.String))
    weight = pl.when(pl.col("sum_ns").sum() > 0).then("sum_ns").otherwise("count")
    known = pl.col("occupancy_share").is_not_null()
    told = pl.col("occupancy_share").filter(known).dot(pl.col("dur_ns").filter(known))
    time = pl.col("dur_ns").filter(known).sum()
    groups = kernels.group_by(*_CONFIGURATION).agg(
        pl.len().alias("count"),
        pl.col("dur_ns").sum().alias("sum_ns"),
        told.alias("told"),
        time.alias("told_ns"),
    )
    fillings = [
        _filling(grid, block, registers, shared, limits, processors)
        for grid, block, registers, shared in groups.select(_CONFIGURATION[1:]).iter_rows()
    ]
    schema = dict.fromkeys(_ESTIMATES, pl.Float64) | {"limit": pl.String}
    groups = groups.hstack(pl.DataFrame([msgspec.structs.asdict(one) for one in fillings], schema=schema))
    found = (
        groups.sort("sum_ns", "grid", "block", descending=[True, False, False])
        .group_by("name")
        .agg(
            pl.col("count").sum(),
            pl.col("sum_ns").sum(),
            *(_weighted(pl.col(name), weight).alias(name) for name in _ESTIMATES),
            pl.col("limit").first(),
            pl.when(pl.col("told_ns").sum() > 0)
            .then(pl.col("told").sum() / pl.col("told_ns").sum())
            .alias("occupancy_share"),
        )
    )
    return found.with_columns(multiprocessors=pl.lit(processors, pl.Int32)).sort(
        "sum_ns", "name", descending=[True, False]
    )


def _weighted(value: pl.Expr, weight: pl.Expr) -> pl.Expr:
    """Mean of the known values by weight; null where none is known."""
    return (value * weight).sum() / pl.when(value.is_not_null()).then(weight).sum().replace(0, None)


def _told_multiprocessors(kernels: pl.DataFrame) -> int | None:
    """Blocks of a launch / its blocks per multiprocessor, where the recording tells both; None: it does not."""
    rows = kernels.filter(pl.col("blocks_per_sm") > 0, pl.col("grid").is_not_null())
    rows = rows.select("grid", "blocks_per_sm").unique()
    # The largest launch has the least rounding in its quotient.
    largest = max(((_product(grid) or 0.0, per_one) for grid, per_one in rows.iter_rows()), default=None)
    return round(largest[0] / largest[1]) if largest and largest[0] else None


def _filling(
    grid: str | None,
    block: str | None,
    registers: int | None,
    shared: int | None,
    limits: DeviceLimits | None,
    processors: int | None,
) -> Filling:
    blocks, threads = _product(grid), _product(block)
    if not blocks or not threads:
        return Filling(blocks=blocks, threads=threads)
    found = Filling(blocks=blocks, threads=threads, sm_share=min(1.0, blocks / processors) if processors else None)
    allowed = _blocks_allowed(int(threads), registers, shared, limits)
    if limits is None or limits.threads is None or not allowed:
        return found
    limit, resident = min(allowed.items(), key=lambda item: item[1])
    if not resident:
        return found
    warps = math.ceil(threads / limits.warp)
    waves = blocks / (resident * limits.multiprocessors)
    return msgspec.structs.replace(
        found,
        resident_share=resident * warps * limits.warp / limits.threads,
        limit=limit,
        waves=waves,
        tail_share=1 - waves / math.ceil(waves),
    )


def _blocks_allowed(
    threads: int, registers: int | None, shared: int | None, limits: DeviceLimits | None
) -> dict[str, int]:
    """Blocks that one multiprocessor holds at once, by what limits them; empty: not known."""
    if (
        limits is None
        or limits.threads is None
        or limits.blocks is None
        or limits.registers is None
        or limits.shared_bytes is None
        or registers is None
        or shared is None
    ):
        return {}
    warps = math.ceil(threads / limits.warp)
    found = {"threads": limits.threads // (warps * limits.warp), "blocks": limits.blocks}
    per_warp = math.ceil(registers * limits.warp / REGISTER_UNIT) * REGISTER_UNIT
    if per_warp:
        found["registers"] = limits.registers // per_warp // WARP_UNIT * WARP_UNIT // warps
    per_block = shared + (limits.reserved_shared_bytes or 0)
    if shared:
        found["shared_memory"] = limits.shared_bytes // per_block
    return found


def _product(extents: str | None) -> float | None:
    """Product of a recorded list such as ``[512, 1, 1]``; None where there is none."""
    try:
        values = msgspec.json.decode(extents or "", type=list[int])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return float(math.prod(values)) if values else None
