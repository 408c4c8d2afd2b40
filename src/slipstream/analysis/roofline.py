"""Ops of the window against what the device can do at most."""

import polars as pl

from slipstream.analysis.flops import MATRIX
from slipstream.analysis.op_groups import described_ops
from slipstream.analysis.window_rows import starting_in_window
from slipstream.model import NotEnoughData
from slipstream.model.peaks import Peaks, peaks_of
from slipstream.store import Tables

PEAKS = {"bf16": "bf16_tflops", "fp16": "fp16_tflops", "tf32": "tf32_tflops", "fp32": "fp32_tflops"}
"""Column of the peaks by precision; for others none is known."""
_GROUP = ("name", "family", "input_dims", "input_types", "precision")


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``roofline``, the longest first.

    Raises:
        NotEnoughData: shapes were not recorded, or no op with a formula did device work in the window.
    """
    rows = counted_ops(tables)
    if not tables["device_work"].height:
        raise NotEnoughData("no device work in this recording: the roofline needs times of the device")
    if not rows.height:
        raise NotEnoughData("no op of the window whose shapes were recorded and that has a formula did device work")
    names = described_ops(tables).select("event", "name", "input_dims", "input_types")
    rows = rows.join(names, on="event").with_columns(pl.col("name", "family", "precision").cast(pl.String))
    all_told = pl.col("moved_bytes").null_count() == 0
    groups = rows.group_by(*_GROUP).agg(
        pl.len().alias("count"),
        pl.col("flops").sum(),
        pl.when(all_told).then(pl.col("moved_bytes").sum()).alias("moved_bytes"),
        pl.col("work_ns").sum(),
    )
    peaks = peaks_of(tables.source.device)
    limits = pl.Series(
        [peak_of(peaks, family, precision) for family, precision in groups.select("family", "precision").rows()]
    )
    reasons = [
        _reason(tables.source.device, peaks, *row) for row in groups.select("family", "precision", "moved_bytes").rows()
    ]
    groups = groups.with_columns(
        limits.cast(pl.Float64).alias("peak"),
        pl.lit(peaks.hbm_gbps if peaks else None, pl.Float64).alias("memory_peak"),
        pl.Series("reason", reasons, pl.String),
    )
    return _against_peaks(groups).sort("work_ns", *_GROUP[:3], descending=[True, False, False, False])


def counted_ops(tables: Tables) -> pl.DataFrame:
    """Rows of ``op_flops`` of the window that count; where there is a device, those that did work on it."""
    rows = tables["op_flops"].filter("counted").join(tables["ops"].select("event", "ts_ns"), on="event")
    rows = starting_in_window(tables, rows)
    return rows.filter(pl.col("work_ns") > 0) if tables["device_work"].height else rows


def peak_of(peaks: Peaks | None, family: str, precision: str | None) -> float | None:
    """Peak in 10^12 operations per second; None: not known.

    Args:
        peaks: of the device; None: unknown device.
        family: matrix families run on matrix units, all others on vector units, which compute in fp32.
        precision: as in op_flops.
    """
    if peaks is None:
        return None
    if family not in MATRIX:
        return None if precision == "fp64" else peaks.fp32_tflops
    if precision == "fp32_or_tf32":
        return peaks.fp32_tflops if peaks.tf32_tflops is None else None
    column = PEAKS.get(precision or "")
    return getattr(peaks, column) if column else None


def _reason(
    device: str | None, peaks: Peaks | None, family: str, precision: str | None, moved: int | None
) -> str | None:
    if peaks is None:
        return f"peaks of {device} are not known" if device else "the recording does not name its device"
    if family in MATRIX and precision == "fp32_or_tf32" and peaks.tf32_tflops is not None:
        return "kernel names do not tell fp32 from TF32"
    if peak_of(peaks, family, precision) is None:
        return f"no peak of {precision} is known for {peaks.device}" if precision else "the precision is not told"
    if moved is None:
        return "bytes are not known: types of tensors in lists are not recorded"
    return None


def _against_peaks(groups: pl.DataFrame) -> pl.DataFrame:
    flops, moved, work = pl.col("flops"), pl.col("moved_bytes"), pl.col("work_ns")
    # Operations per ns are 10^9 per second; bytes per ns are 10^9 bytes per second.
    groups = groups.with_columns(
        intensity=pl.when(moved > 0).then(flops / moved),
        attained_tflops=flops / work / 1e3,
        attained_gbps=moved / work,
        compute_ns=flops / (pl.col("peak") * 1e3),
        memory_ns=moved / pl.col("memory_peak"),
    )
    compute, memory = pl.col("compute_ns"), pl.col("memory_ns")
    both = compute.is_not_null() & memory.is_not_null()
    nearer = pl.when(compute >= memory).then(pl.lit("compute")).otherwise(pl.lit("memory"))
    return groups.with_columns(
        flops_share=compute / work,
        bw_share=memory / work,
        roofline_share=pl.when(both).then(pl.max_horizontal(compute, memory) / work),
        bound=pl.when(both).then(nearer),
    ).drop("peak", "memory_peak", "compute_ns", "memory_ns")
