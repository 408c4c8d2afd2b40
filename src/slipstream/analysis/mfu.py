"""Model FLOPs utilisation of the window, one row per variant of the formula."""

import polars as pl

from slipstream.analysis.flops import MATRIX
from slipstream.analysis.roofline import counted_ops, peak_of
from slipstream.analysis.window_rows import starting_in_window, window_span
from slipstream.model import NotEnoughData
from slipstream.model.peaks import peaks_of
from slipstream.store import Tables

VARIANTS = {"model_flops": "model_flops", "hardware_flops": "flops"}


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``mfu``.

    Raises:
        NotEnoughData: shapes were not recorded, or no matrix work with known operations ran in the window.
    """
    ops = counted_ops(tables).with_columns(pl.col("family", "precision").cast(pl.String))
    matrix = ops.filter(pl.col("family").is_in(MATRIX))
    start, end = window_span(tables)
    if not matrix.height or end <= start:
        raise NotEnoughData("no matrix multiplication, convolution or attention with recorded shapes ran in the window")
    window = tables.row("window")
    known = _known_share(tables, ops)
    rows = [{"variant": variant, **_row(tables, matrix, column, end - start)} for variant, column in VARIANTS.items()]
    steps = window["steps"]
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        basis=pl.lit(window["basis"]).cast(pl.String),
        steps=pl.lit(steps, pl.Int64),
        flops_per_step=pl.col("flops") // int(str(steps)) if steps else pl.lit(None, pl.Int64),
        known_share=pl.lit(known, pl.Float64),
    )


def _row(tables: Tables, matrix: pl.DataFrame, column: str, time_ns: int) -> dict[str, int | float | str | None]:
    device = tables.source.device
    peaks = peaks_of(device)
    sums = matrix.group_by("family", "precision").agg(pl.col(column).sum().alias("flops")).rows()
    flops = sum(count for _, _, count in sums)
    at_peak_ns = 0.0
    reason = None
    for family, precision, count in sorted(sums, key=repr):
        peak = peak_of(peaks, family, precision)
        if peak is not None:
            at_peak_ns += count / (peak * 1e3)
        elif peaks is None:
            reason = f"peaks of {device} are not known" if device else "the recording does not name its device"
        else:
            told = "fp32 or TF32 (kernel names do not tell)" if precision == "fp32_or_tf32" else precision
            reason = f"no peak is known for {told or 'a precision that is not told'}"
    # A recording without operations of this variant (all of them computed again) has no mix to take a peak of.
    return {
        "flops": flops,
        "time_ns": time_ns,
        "attained_tflops": flops / time_ns / 1e3,
        "peak_tflops": flops / at_peak_ns / 1e3 if reason is None and at_peak_ns else None,
        "mfu": at_peak_ns / time_ns if reason is None else None,
        "reason": reason,
    }


def _known_share(tables: Tables, ops: pl.DataFrame) -> float | None:
    """Share of compute kernels' time, launched in the window, of which operations are known."""
    work = tables["device_work"].filter(pl.col("kind") == "kernel")
    work = work.with_columns(pl.coalesce("launch_ts_ns", "ts_ns").alias("begun_ns"))
    whole = int(starting_in_window(tables, work, "begun_ns")["dur_ns"].sum())
    return min(1.0, int(ops["work_ns"].sum()) / whole) if whole else None
