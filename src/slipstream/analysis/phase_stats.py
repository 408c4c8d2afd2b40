"""Time of each phase per step, on the host and of the device work launched in it."""

import polars as pl

from slipstream.analysis.intervals import length, union
from slipstream.analysis.painting import inside, paint
from slipstream.analysis.phase_spans import PHASES, phase_at
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``phase_stats``: by step, phases in alphabetical order, what has no phase last.

    Raises:
        NotEnoughData: nothing in the recording tells one phase from another.
    """
    host = _host(tables)
    work = tables["device_work"]
    if not work.height:
        return host.sort("step", "phase", nulls_last=True)
    launched = work["launch_ts_ns"].fill_null(-1).to_numpy()
    phase = phase_at(tables, launched)
    known = work["launch_ts_ns"].is_not_null()
    work = work.with_columns(phase=pl.select(pl.when(known).then(phase)).to_series(), step="step_launched")
    rows = [
        {"step": step, "phase": name, "device_ns": int(mine["dur_ns"].sum()), "device_busy_ns": _busy(mine)}
        for (step, name), mine in work.group_by("step", "phase", maintain_order=True)
    ]
    schema = {"step": pl.Int64, "phase": pl.String, "device_ns": pl.Int64, "device_busy_ns": pl.Int64}
    device = pl.DataFrame(rows, schema=schema)
    found = host.join(device, on=["step", "phase"], how="full", coalesce=True, nulls_equal=True)
    zero = pl.col("device_ns", "device_busy_ns").fill_null(0)
    # A phase that launched something in a step whose marks it does not touch took no time there.
    host_ns = pl.when(pl.col("phase").is_not_null()).then(pl.col("host_ns").fill_null(0))
    return found.with_columns(zero, host_ns=host_ns).sort("step", "phase", nulls_last=True)


def _host(tables: Tables) -> pl.DataFrame:
    """Time of each phase within each step's marks, and outside of all."""
    spans = tables["phase_spans"].with_columns(pl.col("phase").cast(pl.String))
    steps = tables["steps"].sort("start_ns")
    start, begin = spans["start_ns"].to_numpy(), steps["start_ns"].to_numpy()
    codes = spans["phase"].replace_strict({name: code for code, name in enumerate(PHASES)}, return_dtype=pl.Int64)
    painted = paint(start, start + spans["dur_ns"].to_numpy(), codes.to_numpy())
    pieces, owner = inside(painted, paint(begin, begin + steps["dur_ns"].to_numpy(), 0))
    within = pl.DataFrame(
        {"step": steps["number"].gather(owner.tolist()), "code": pieces.label, "host_ns": pieces.end - pieces.start}
    )
    whole = pl.DataFrame({"code": painted.label, "host_ns": painted.end - painted.start})
    sums = within.group_by("step", "code").agg(pl.col("host_ns").sum())
    rest = (
        whole.group_by("code")
        .agg(pl.col("host_ns").sum())
        .join(within.group_by("code").agg(pl.col("host_ns").sum().alias("within")), on="code", how="left")
        .select(pl.lit(None, pl.Int64).alias("step"), "code", pl.col("host_ns") - pl.col("within").fill_null(0))
        .filter(pl.col("host_ns") > 0)
    )
    names = pl.col("code").replace_strict(dict(enumerate(PHASES)), return_dtype=pl.String)
    return pl.concat([sums, rest]).select("step", phase=names, host_ns="host_ns")


def _busy(work: pl.DataFrame) -> int:
    start = work["ts_ns"].to_numpy()
    return length(union(start, start + work["dur_ns"].to_numpy()))
