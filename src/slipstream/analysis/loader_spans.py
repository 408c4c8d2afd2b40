"""Spans in which a thread was inside a data loader's ``next``.

Three things show them, the better one wins where they overlap: the range that torch's DataLoader opens
(``enumerate(DataLoader)#...__next__``), the Python row of that method, and the capture's own measurement.
"""

import numpy as np
import polars as pl

from slipstream.analysis.busy import busy_of_window
from slipstream.analysis.painting import complement, covered, inside, layer, nothing, paint
from slipstream.analysis.places import PLACE, Places
from slipstream.analysis.step_marks import step_at
from slipstream.model import NotEnoughData
from slipstream.store import Tables

ANNOTATION = "enumerate(DataLoader)#"
LOADER_FILE = "torch/utils/data/dataloader.py"
CLOCK_SLACK_NS = 1_000_000
"""The capture's own span of a wait starts this close to the trace's row of the same wait."""
COLUMNS = {
    "start_ns": pl.Int64(),
    "dur_ns": pl.Int64(),
    "thread": pl.Int32(),
    "single_process": pl.Boolean(),
    **PLACE,
}


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``loader_spans``.

    Raises:
        NotEnoughData: the recording has no host rows at all, so a loader could not be seen.
    """
    trace = tables.trace
    if not (trace.annotations.height or trace.ops.height or trace.python.height or trace.has("loader_waits")):
        raise NotEnoughData("no host rows in this recording: record with activities=[CPU, CUDA]")
    measured = _measured(tables)
    sources = {"annotation": _annotations(tables), "python": _python(tables), "measured": measured}
    rows = pl.concat([rows.with_columns(source=pl.lit(name)) for name, rows in sources.items()])
    if not rows.height:
        return rows
    kept = [_best(part) for _, part in rows.group_by("thread")]
    spans = _with_statements(pl.concat(kept).sort("start_ns"), measured)
    return spans.with_columns(idle_ns=_idle_inside(tables, spans), step=step_at(tables, spans["start_ns"].to_numpy()))


def _annotations(tables: Tables) -> pl.DataFrame:
    name = pl.col("name").cast(pl.String)
    rows = tables["annotations"].filter(~pl.col("on_device") & name.str.starts_with(ANNOTATION))
    return _located(tables, rows.with_columns(single_process=name.str.contains("_SingleProcess", literal=True)))


def _python(tables: Tables) -> pl.DataFrame:
    file = pl.col("file").str.replace_all("\\", "/", literal=True)
    names = tables["frames"].filter(file.str.ends_with(LOADER_FILE) & (pl.col("function") == "__next__"))["name"]
    rows = tables["python"].filter(pl.col("name").is_in(names.implode()))
    return _located(tables, rows.with_columns(single_process=pl.lit(None, pl.Boolean)))


def _located(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the user's code that asked the loader: by Python rows around them, else by call stacks inside."""
    finder = Places(tables)
    places = finder.around(rows["thread"].to_numpy(), rows["ts_ns"].to_numpy())
    if places["line"].null_count() == places.height:
        spans = rows.select("thread", "ts_ns", end=pl.col("ts_ns") + pl.col("dur_ns")).iter_rows()
        found = [finder.loader_statement(thread, start, end) or {} for thread, start, end in spans]
        places = pl.DataFrame([{key: place.get(key) for key in PLACE} for place in found], schema=PLACE)
    located = rows.rename({"ts_ns": "start_ns"}).select("start_ns", "dur_ns", "thread", "single_process")
    return located.with_columns(places).select(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items())


def _measured(tables: Tables) -> pl.DataFrame:
    """The capture's own spans within the window, on the main thread."""
    if not tables.trace.has("loader_waits"):
        return pl.DataFrame(schema=COLUMNS)
    window = tables.row("window")
    within = pl.col("start_ns").is_between(pl.lit(window["start_ns"]), pl.lit(window["end_ns"]))
    return (
        tables["loader_waits"]
        .filter(within)
        .select(
            "start_ns",
            "dur_ns",
            pl.lit(window["main_thread"]).cast(pl.Int32).alias("thread"),
            (pl.col("workers") == 0).alias("single_process"),
            "file",
            "line",
            "function",
            pl.when(pl.col("line").is_not_null()).then(pl.lit("statement")).alias("precision"),
        )
        .select(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items())
    )


def _best(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of one thread without those that lie inside, or overlap, an outer or better one."""
    taken = nothing()
    kept: list[pl.DataFrame] = []
    for _, part in rows.group_by("source", maintain_order=True):
        start = part["start_ns"].to_numpy()
        end = start + part["dur_ns"].to_numpy()
        candidates = paint(start, end, 0, np.arange(len(start)))
        whole = candidates.start == start[candidates.event]
        _, overlapped = inside(taken, candidates)
        whole[overlapped] = False
        chosen = candidates.event[whole]
        kept.append(part[chosen.tolist()])
        taken = layer([taken, paint(start[chosen], end[chosen], 0)])
    return pl.concat(kept)


def _with_statements(spans: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    """Take the statement and the kind of loader from the capture, where it measured the same wait."""
    known = measured.filter(pl.col("line").is_not_null()).sort("start_ns").drop("dur_ns", "thread")
    if not known.height:
        return spans
    matched = spans.join_asof(known, on="start_ns", strategy="nearest", tolerance=CLOCK_SLACK_NS, suffix="_measured")
    hit = pl.col("line_measured").is_not_null()
    return matched.with_columns(
        pl.when(hit).then(pl.col(f"{name}_measured")).otherwise(pl.col(name)).alias(name)
        for name in (*PLACE, "single_process")
    ).select(spans.columns)


def _idle_inside(tables: Tables, spans: pl.DataFrame) -> pl.Series:
    """On a device: its idle time inside each span. On CPU training all of the span within the window: ops that make
    a batch do not train."""
    start = spans["start_ns"].to_numpy()
    end = start + spans["dur_ns"].to_numpy()
    window = tables.row("window")
    first, last = int(str(window["start_ns"])), int(str(window["end_ns"]))
    if window["on_device"]:
        return pl.Series(covered(complement(busy_of_window(tables), first, last, 0), start, end))
    return pl.Series(np.maximum(np.minimum(end, last) - np.maximum(start, first), 0))
