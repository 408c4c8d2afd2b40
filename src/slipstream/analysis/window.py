"""The part of a recording that is diagnosed, what counts as work in it, and how busy that was."""

import polars as pl

from slipstream.analysis.device_work import LAUNCH, analysed_device
from slipstream.analysis.intervals import Intervals, clip, length, union
from slipstream.store import Tables, Trace


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``window``.

    With several devices in one file, busy is that of the device with most work (``analysed_device``).
    """
    trace = tables.trace
    start, end, basis = _extent(tables)
    launches = _launches(tables)
    on_device = tables["device_work"].height > 0 or launches.height > 0
    main_thread = _main_thread(trace, launches if on_device else launches.clear())
    inside = launches.filter(pl.col("ts_ns").is_between(start, end, closed="left"))
    kernels = tables["device_work"].filter(pl.col("kind").is_in(["kernel", "collective"]))
    ran = kernels.filter((pl.col("ts_ns") < end) & (pl.col("ts_ns") + pl.col("dur_ns") >= start))
    # The host launched kernels, yet none are in the file: the device was not idle, what it did is unknown.
    # The same holds for a thread of which no ops were recorded.
    known = (ran.height > 0 or inside.height == 0) if on_device else tables["ops"].height > 0
    busy = length(clip(_work(tables, on_device, main_thread), start, end)) if known else None
    return pl.DataFrame(
        {
            "start_ns": [start],
            "end_ns": [end],
            "basis": [basis],
            "steps": [trace.steps.height or None],
            "on_device": [on_device],
            "main_thread": [main_thread],
            "busy_ns": [busy],
            "idle_ns": [None if busy is None else end - start - busy],
        }
    )


def work_of_window(tables: Tables) -> Intervals | None:
    """When the device (or main thread) worked in the whole recording; None when the file does not tell."""
    window = tables.row("window")
    if window["busy_ns"] is None:
        return None
    return _work(tables, bool(window["on_device"]), window["main_thread"])


def _extent(tables: Tables) -> tuple[int, int, str]:
    """Start, end and basis of the window."""
    steps = tables["steps"]
    if not steps.height:
        events = tables["events"].filter(pl.col("ts_ns").is_not_null() & pl.col("dur_ns").is_not_null())
        if not events.height:
            return 0, 0, "recording"
        return *_span(events, "ts_ns"), "recording"
    start, end = _span(steps, "start_ns")
    work = tables["device_work"]
    # Work without a known launch that began inside was launched before the end at least.
    begun = pl.coalesce("launch_ts_ns", "ts_ns").is_between(start, end, closed="left")
    inside = work.filter(begun)
    if inside.height:
        end = max(end, _span(inside, "ts_ns")[1])
    return start, end, "inferred" if steps["inferred"].any() else "marks"


def _span(rows: pl.DataFrame, start: str) -> tuple[int, int]:
    first, last = rows.select(pl.col(start).min().alias("first"), (pl.col(start) + pl.col("dur_ns")).max()).row(0)
    return int(first), int(last)


def _launches(tables: Tables) -> pl.DataFrame:
    """Runtime calls that put kernels on the device, by their name or since they are known to have."""
    kernels = tables["device_work"].filter(pl.col("kind").is_in(["kernel", "collective"]))
    by_name = pl.col("name").cast(pl.String).str.contains(LAUNCH)
    return tables["runtime"].filter(by_name | pl.col("event").is_in(kernels["launch_event"].drop_nulls().implode()))


def _main_thread(trace: Trace, launches: pl.DataFrame) -> int | None:
    """The thread with the step marks; without marks that with most launches, else most time in ops.

    A recording without ops on the host is driven by the thread with most calls of any kind.
    """
    marked = _most_frequent(trace.steps)
    if marked is not None:
        return marked
    launching = _most_frequent(launches)
    if launching is not None:
        return launching
    times = [
        (length(union(rows["ts_ns"], rows["ts_ns"] + rows["dur_ns"])), -int(str(thread)), int(str(thread)))
        for (thread,), rows in trace.ops.drop_nulls("thread").group_by("thread")
    ]
    if times:
        return max(times)[2]
    for name in ("runtime", "python", "annotations"):
        rows = trace.table(name)
        found = _most_frequent(rows.filter(~pl.col("on_device")) if name == "annotations" else rows)
        if found is not None:
            return found
    return None


def _most_frequent(rows: pl.DataFrame) -> int | None:
    counts = rows.drop_nulls("thread").group_by("thread").len().sort("len", "thread", descending=[True, False])
    return int(counts["thread"][0]) if counts.height else None


def _work(tables: Tables, on_device: bool, main_thread: object) -> Intervals:
    """Device work of the analysed device, or the ops of the main thread."""
    if on_device:
        rows = tables["device_work"]
        device = analysed_device(rows)
        if device is not None:
            rows = rows.filter(pl.col("device") == device)
    else:
        rows = tables["ops"].filter(pl.col("thread").eq_missing(pl.lit(main_thread)))
    start = rows["ts_ns"].to_numpy()
    return union(start, start + rows["dur_ns"].to_numpy())
