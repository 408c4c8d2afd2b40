"""Steps from the marks that the training left on the host."""

import polars as pl

from slipstream.ingest.ledger import Ledger, plural

MARK = r"^ProfilerStep\s*#?\s*(\d+)"
OPTIMIZER_STEP = r"^Optimizer\.step#"
FEWEST_OPTIMIZER_STEPS = 3


def steps(annotations: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The table ``steps``.

    Marks come as ``ProfilerStep#n`` on the thread that calls the profiler. A mark inside another one, or one of
    another thread that overlaps those of the thread with the most, is a double. Without any mark, the starts of
    at least three optimizer steps on one thread delimit steps, as inferred ones.

    Args:
        annotations: rows of that table; only those on the host are looked at.
        ledger: counts doubles and inferred steps.
    """
    host = annotations.filter(~pl.col("on_device")).with_columns(pl.col("name").cast(pl.String))
    marks = host.with_columns(pl.col("name").str.extract(MARK).cast(pl.Int64, strict=False).alias("number")).filter(
        pl.col("number").is_not_null()
    )
    if not marks.height:
        return _by_optimizer(host, ledger)
    kept = _without_doubles(marks)
    ledger.note(
        "double_step_marks",
        marks.height - kept.height,
        lambda count: f"{plural(count, 'step mark')} inside or beside another one: left out.",
        effect="none",
    )
    return kept.select("number", pl.col("ts_ns").alias("start_ns"), "dur_ns", "thread", pl.lit(False).alias("inferred"))


def _without_doubles(marks: pl.DataFrame) -> pl.DataFrame:
    threads = marks.group_by("thread").agg(pl.len().alias("marks"), pl.col("dur_ns").sum().alias("time"))
    main = threads.sort("marks", "time", "thread", descending=[True, True, False])["thread"][0]
    ordered = marks.with_columns((pl.col("thread") == main).alias("main")).sort(
        ["main", "ts_ns", "dur_ns"], descending=[True, False, True]
    )
    kept: list[int] = []
    spans: list[tuple[int, int]] = []
    for at, (start, length) in enumerate(ordered.select("ts_ns", "dur_ns").iter_rows()):
        if all(start >= end or start + length <= begin for begin, end in spans):
            kept.append(at)
            spans.append((start, start + length))
    return ordered[kept].sort("ts_ns")


def _by_optimizer(host: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    calls = host.filter(pl.col("name").str.contains(OPTIMIZER_STEP)).sort("ts_ns")
    schema = {"number": pl.Int64, "start_ns": pl.Int64, "dur_ns": pl.Int64, "thread": pl.Int32, "inferred": pl.Boolean}
    if not calls.height:
        return pl.DataFrame(schema=schema)
    # Several optimizers: the rarest of one thread is called once in every step.
    groups = (
        calls.group_by("thread", "name")
        .len()
        .filter(pl.col("len") >= FEWEST_OPTIMIZER_STEPS)
        .sort("len", "thread", "name")
    )
    if not groups.height:
        return pl.DataFrame(schema=schema)
    ends = calls.join(groups.head(1).select("thread", "name"), on=["thread", "name"]).sort("ts_ns")
    ledger.note(
        "inferred_steps",
        ends.height - 1,
        lambda count: (
            f"No step marks: {plural(count, 'step')} inferred, each from the end of one optimizer step to "
            "the end of the next."
        ),
        effect="none",
    )
    finish = pl.col("ts_ns") + pl.col("dur_ns")
    return ends.select(
        pl.int_range(pl.len()).cast(pl.Int64).alias("number"),
        finish.alias("start_ns"),
        (finish.shift(-1) - finish).alias("dur_ns"),
        "thread",
        pl.lit(True).alias("inferred"),
    ).head(ends.height - 1)
