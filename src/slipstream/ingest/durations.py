"""Durations that cannot be right, and device rows whose time was never collected."""

import polars as pl

from slipstream.ingest.clock import FAR_NS
from slipstream.ingest.ledger import Ledger, plural

OVERRUN_NS = 100_000_000
"""Rows of one stream run one after the other. Programmatic dependent launch overlaps them by microseconds; who
runs on for a tenth of a second after the next one began has a wrong end."""


def host_durations(frame: pl.DataFrame, end_ns: int, ledger: Ledger) -> pl.DataFrame:
    """Make durations of host rows possible: never negative, never beyond the recording by days.

    Args:
        frame: rows with ``ts_ns`` (usable) and ``dur_ns``.
        end_ns: end of the recording on the same clock.
        ledger: counts them.
    """
    negative = frame["dur_ns"] < 0
    endless = frame["dur_ns"] >= FAR_NS
    missing = frame["dur_ns"].is_null()
    wrong = int((negative | endless).sum())
    if not wrong and not missing.any():
        return frame
    ledger.note(
        "impossible_host_durations",
        wrong,
        lambda count: (
            f"{plural(count, 'host event')} with a negative or endless duration: "
            "taken as 0, or as lasting to the end of the recording."
        ),
    )
    ledger.note(
        "missing_durations",
        int(missing.sum()),
        lambda count: f"{plural(count, 'event')} without a duration: taken as 0.",
    )
    return frame.with_columns(
        pl.when(pl.col("dur_ns") >= FAR_NS)
        .then((end_ns - pl.col("ts_ns")).clip(lower_bound=0))
        .otherwise(pl.col("dur_ns").clip(lower_bound=0))
        .fill_null(0)
        .alias("dur_ns")
    )


def device_durations(frame: pl.DataFrame, end_ns: int, ledger: Ledger) -> pl.DataFrame | None:
    """Clip impossible durations of device rows to the start of the next row of their stream.

    Args:
        frame: all kernels, copies and sets: ``event``, ``device``, ``stream``, ``ts_ns``, ``dur_ns``.
        end_ns: end of the recording, for the last row of a stream.
        ledger: counts them, with the share of device time that they have.
    Returns:
        ``event`` and ``dur_ns`` of all rows; None when all are right.
    """
    ordered = frame.sort("device", "stream", "ts_ns", "event").with_columns(
        pl.col("ts_ns").shift(-1).over("device", "stream").alias("next_ns")
    )
    missing = ordered["dur_ns"].is_null()
    ledger.note(
        "missing_durations",
        int(missing.sum()),
        lambda count: f"{plural(count, 'event')} without a duration: taken as 0.",
    )
    dur = pl.col("dur_ns").fill_null(0)
    wrong = (dur < 0) | (dur >= FAR_NS) | (pl.col("ts_ns") + dur.clip(0, FAR_NS) - pl.col("next_ns") >= OVERRUN_NS)
    longest = (pl.col("next_ns").fill_null(end_ns) - pl.col("ts_ns")).clip(lower_bound=0)
    repaired = ordered.with_columns(
        wrong.fill_null(False).alias("wrong"),
        pl.when(wrong.fill_null(False))
        .then(pl.min_horizontal(dur.clip(lower_bound=0), longest))
        .otherwise(dur)
        .alias("dur_ns"),
    )
    count = int(repaired["wrong"].sum())
    if not count and not missing.any():
        return None
    if count:
        affected = int(repaired.filter("wrong")["dur_ns"].sum())
        share = max(affected / max(1, int(repaired["dur_ns"].sum())), count / repaired.height)
        ledger.note(
            "impossible_device_durations",
            count,
            lambda count: (
                f"{plural(count, 'device event')} with a negative duration, an endless one or one that runs "
                f"on long after the next event of its stream began: clipped to that event ({share:.1%} of device time)."
            ),
            effect="device_time",
            share=share,
        )
    return repaired.select("event", "dur_ns")


def placed(frame: pl.DataFrame, runtime: pl.DataFrame | None, total: int, ledger: Ledger) -> pl.DataFrame:
    """Give device rows without a usable time the place where they were launched, with no duration.

    They stay countable that way, and add nothing to any sum or union of times.

    Args:
        frame: device rows; ``ts_ns`` null where unusable.
        runtime: ``correlation``, ``ts_ns`` of the host's calls; None without any.
        total: device rows in the file.
        ledger: counts them; device totals are lower bounds then.
    """
    untimed = int(frame["ts_ns"].null_count())
    if not untimed:
        return frame
    ledger.note(
        "untimed_device_events",
        untimed,
        lambda count: (
            f"{plural(count, 'device event')} ({count / max(1, total):.1%}) without a usable time: shown "
            "where they were launched, with no duration; busy time and sums are lower bounds."
        ),
        effect="lower_bound",
    )
    if runtime is not None:
        launches = (
            runtime.filter(pl.col("correlation").is_not_null())
            .select("correlation", pl.col("ts_ns").alias("launch_ns"))
            .unique("correlation", keep="first", maintain_order=True)
        )
        frame = frame.join(launches, on="correlation", how="left", maintain_order="left")
    else:
        frame = frame.with_columns(pl.lit(None, dtype=pl.Int64).alias("launch_ns"))
    absent = pl.col("ts_ns").is_null()
    return frame.with_columns(
        pl.when(absent).then(0).otherwise(pl.col("dur_ns")).alias("dur_ns"),
        pl.coalesce("ts_ns", "launch_ns").alias("ts_ns"),
    ).drop("launch_ns")
