"""Host calls that wait for the device, and how long the device stood still after each."""

import re

import numpy as np
import polars as pl

from slipstream.analysis.busy import busy_of_window
from slipstream.analysis.nesting import nesting_of
from slipstream.analysis.painting import Longs, complement, covered
from slipstream.analysis.places import Places
from slipstream.analysis.step_marks import step_at
from slipstream.model import NotEnoughData
from slipstream.store import Tables

SYNCHRONIZE = re.compile(
    r"(?i)^(cuda|cu|hip|mtia|musa|aclrt)?_?(device|stream|ctx|context)_?synchronize|^synchronize(stream|device)"
)
EVENT_WAIT = re.compile(r"(?i)^(cuda|cu|hip)event_?synchronize|^synchronizeEvent")
COPY = re.compile(r"(?i)^(cuda|cu|hip)mem(cpy|set)")
ASYNC = re.compile(r"(?i)async")


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``blocking_calls``.

    Raises:
        NotEnoughData: the recording has no rows of the device's runtime.
    """
    runtime = tables["runtime"]
    if not runtime.height:
        raise NotEnoughData("no runtime rows: record with activities=[CPU, CUDA] on a machine with a device")
    calls = _waiting(_with_copies(tables, runtime)).sort("ts_ns")
    calls = calls.with_columns(op_event=_op_around(tables, calls))
    calls = _read_backs(calls)
    places = Places(tables)
    return calls.select(
        "event",
        "name",
        "kind",
        (pl.col("op_event").is_null()).alias("explicit"),
        "thread",
        "ts_ns",
        "dur_ns",
        "op_event",
        "copy_event",
        "size_bytes",
        gap_ns=_gaps(tables, calls),
        step=step_at(tables, calls["ts_ns"].to_numpy()),
    ).with_columns(places.of_calls(calls))


def _with_copies(tables: Tables, runtime: pl.DataFrame) -> pl.DataFrame:
    """Runtime rows with the copy each launched, if any."""
    linked = tables["device_work"].filter(pl.col("kind") == "copy").select("event", "launch_event")
    copies = tables["copies"].select("event", pl.col("kind").alias("direction"), "pageable", "size_bytes")
    copied = linked.join(copies, on="event").rename({"event": "copy_event"}).unique("launch_event", keep="first")
    return runtime.join(copied, left_on="event", right_on="launch_event", how="left")


def _waiting(rows: pl.DataFrame) -> pl.DataFrame:
    """Only the calls that wait, with their kind; copies to pageable memory, or without Async in the name, do."""
    name = pl.col("name").cast(pl.String)
    is_copy = pl.col("copy_event").is_not_null() & name.str.contains(COPY.pattern)
    waits = pl.col("pageable").fill_null(False) | ~name.str.contains(ASYNC.pattern)
    direction = pl.col("direction").cast(pl.String)
    kind = (
        pl.when(is_copy & waits & (direction == "DtoH"))
        .then(pl.lit("read_back"))
        .when(is_copy & waits & (direction == "HtoD"))
        .then(pl.lit("pageable_upload"))
        .when(name.str.contains(SYNCHRONIZE.pattern))
        .then(pl.lit("synchronize"))
        .when(name.str.contains(EVENT_WAIT.pattern))
        .then(pl.lit("event"))
    )
    # An asynchronous copy does not wait by itself; it is kept to tell what the next synchronize waits for.
    return rows.with_columns(kind=kind).filter(pl.col("kind").is_not_null() | is_copy)


def _op_around(tables: Tables, calls: pl.DataFrame) -> pl.Series:
    """The innermost op around each call on its thread, or null."""
    index = nesting_of(tables.trace, "ops").innermost(calls["thread"], calls["ts_ns"])
    return tables["ops"]["event"].gather(pl.Series(index).replace(-1, None))


def _read_backs(calls: pl.DataFrame) -> pl.DataFrame:
    """A synchronize under the same op as a copy before it is how that op waits for the copy."""
    same_op = (
        (pl.col("op_event") == pl.col("op_event").shift(1))
        & (pl.col("thread") == pl.col("thread").shift(1))
        & pl.col("copy_event").shift(1).is_not_null()
    ).fill_null(False)
    direction = pl.col("direction").shift(1).cast(pl.String)
    kind = (
        pl.when(same_op & (pl.col("kind") == "synchronize") & (direction == "DtoH"))
        .then(pl.lit("read_back"))
        .when(same_op & (pl.col("kind") == "synchronize") & (direction == "HtoD"))
        .then(pl.lit("pageable_upload"))
        .otherwise(pl.col("kind"))
    )
    takes_copy = same_op & (pl.col("kind") == "synchronize")
    return (
        calls.sort("thread", "ts_ns")
        .with_columns(
            kind=kind,
            copy_event=pl.when(takes_copy).then(pl.col("copy_event").shift(1)).otherwise(pl.col("copy_event")),
            size_bytes=pl.when(takes_copy).then(pl.col("size_bytes").shift(1)).otherwise(pl.col("size_bytes")),
        )
        .filter(pl.col("kind").is_not_null())
        .sort("ts_ns")
    )


def _gaps(tables: Tables, calls: pl.DataFrame) -> pl.Series:
    """Device idle from the last work before each call's return to the first launched after it, in ns.

    Clipped at the next blocking call. Zero where the device had work all along.
    """
    window = tables.row("window")
    first, last = int(str(window["start_ns"])), int(str(window["end_ns"]))
    idle = complement(busy_of_window(tables), first, last, 0)
    work = tables["device_work"].filter(pl.col("launch_ts_ns").is_not_null()).sort("launch_ts_ns")
    start: Longs = calls["ts_ns"].to_numpy()
    back: Longs = start + calls["dur_ns"].to_numpy()
    launched = np.append(work["launch_ts_ns"].to_numpy(), last)
    runs = np.append(work["ts_ns"].to_numpy(), last)
    until = runs[np.searchsorted(launched, back).clip(0, len(launched) - 1)]
    following = np.append(start[1:], last)
    until = np.clip(np.minimum(until, np.maximum(following, back)), back, None)
    # The idle time before the return counts as well, back to the end of the last work.
    index = np.searchsorted(idle.start, back, side="right") - 1
    safe = np.maximum(index, 0)
    asleep = (index >= 0) & (back <= idle.end[safe]) if len(idle) else np.zeros(len(back), bool)
    since = np.where(asleep, np.maximum(idle.start[safe] if len(idle) else back, start), back)
    return pl.Series(covered(idle, since, until))
