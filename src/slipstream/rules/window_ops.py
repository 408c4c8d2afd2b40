"""The host ops of the window with their time, nesting and place: what most rules about single ops begin with."""

import weakref

import numpy as np
import polars as pl

from slipstream.analysis.painting import Painted, covered, paint
from slipstream.model import Evidence
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import PLACE
from slipstream.rules.scope import Scope
from slipstream.rules.wording import duration
from slipstream.store import Tables

FIXED_NS = 5_000
"""The most that an op's fixed cost is taken for: calling it on a tiny tensor takes 1 to 5 us while recorded."""
LAUNCH = ("launch",)
"""Cause of idle time that single calls of ops make: one that holds the host for long does more than launch."""
PACE = ("launch", "host")
"""Causes of idle time that the pace of a loop in Python makes."""
_TREE = ("event", "parent", "root", "depth", "self_ns", "device_self_ns", "device_total_ns")
_KNOWN: "weakref.WeakKeyDictionary[Tables, pl.DataFrame]" = weakref.WeakKeyDictionary()


def window_ops(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Ops that start in the window, in order of thread and time; without a device those of the main thread alone.

    Returns:
        The columns of ``ops`` (name as text) and of ``op_tree``, the place, ``end_ns`` and ``work_ns``: device work
        the op launched itself, without a device its own time on the thread.
    """
    if tables not in _KNOWN:
        _KNOWN[tables] = _window_ops(tables, scope)
    return _KNOWN[tables]


def _window_ops(tables: Tables, scope: Scope) -> pl.DataFrame:
    ops = tables["ops"].filter(pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left"))
    if not scope.on_device:
        ops = ops.filter(pl.col("thread").eq_missing(pl.lit(scope.main_thread)))
    places = tables["op_places"].select(
        "event", "line", *(pl.col(name).cast(pl.String) for name in PLACE if name != "line")
    )
    return (
        ops.with_columns(pl.col("name").cast(pl.String), end_ns=pl.col("ts_ns") + pl.col("dur_ns"))
        .join(tables["op_tree"].select(_TREE), on="event", how="left")
        .join(places, on="event", how="left")
        .with_columns(work_ns=pl.col("device_self_ns" if scope.on_device else "self_ns").fill_null(0))
        .sort("thread", "ts_ns", "end_ns", descending=[False, False, True])
    )


def leaves(ops: pl.DataFrame) -> pl.DataFrame:
    """Those of some ops of the window that call no op themselves.

    Args:
        ops: all rows of ``window_ops``.
    """
    return ops.join(ops.select(pl.col("parent").alias("event")).drop_nulls().unique(), on="event", how="anti").sort(
        "thread", "ts_ns", "end_ns", descending=[False, False, True]
    )


def within(ops: pl.DataFrame, spans: Painted) -> pl.Series:
    """Whether each op starts inside one of some spans, whatever their thread."""
    position = ops["ts_ns"].to_numpy()
    if not len(spans):
        return pl.Series(np.zeros(len(position), bool))
    index = np.searchsorted(spans.start, position, side="right") - 1
    return pl.Series((index >= 0) & (position < spans.end[np.maximum(index, 0)]))


def spans_of(rows: pl.DataFrame, start: str = "ts_ns") -> Painted:
    """Rows with a start and ``dur_ns`` as disjoint spans."""
    begin = rows[start].to_numpy()
    return paint(begin, begin + rows["dur_ns"].to_numpy(), 0)


def marks(tables: Tables, pattern: str) -> Painted:
    """Spans of annotations on the host whose name matches."""
    rows = tables["annotations"].filter(~pl.col("on_device") & pl.col("name").cast(pl.String).str.contains(pattern))
    return spans_of(rows)


def calls_of(tables: Tables, file: str, function: str) -> pl.DataFrame:
    """Python rows of some functions; none where Python was not recorded.

    Args:
        file: pattern for the path, with slashes.
        function: pattern for the whole name of the function.
    """
    path = pl.col("file").str.replace_all("\\", "/", literal=True)
    frames = tables["frames"].filter(path.str.contains(file) & pl.col("function").str.contains(f"^({function})$"))
    return tables["python"].filter(pl.col("name").is_in(frames["name"].implode()))


def pace_idle(tables: Tables, thread: object, causes: tuple[str, ...]) -> Painted:
    """Idle time of the device because one thread was slow, as disjoint spans."""
    idle = tables["idle_spans"].filter(
        pl.col("cause").is_in(causes) & (pl.col("thread") == pl.lit(thread)).fill_null(True)
    )
    return spans_of(idle.sort("start_ns"), "start_ns")


def with_savings(tables: Tables, scope: Scope, rows: pl.DataFrame) -> pl.DataFrame:
    """Some ops with ``cost_ns``: how much shorter the window would be without them.

    On a device that is their device work as far as the host waits for the device at all, and the idle time during
    which the host was busy with them; without a device it is their work.

    Args:
        rows: rows with thread, ts_ns, end_ns and ``work_ns``; none lies inside another.
    """
    if not scope.on_device:
        return rows.with_columns(cost_ns=pl.col("work_ns"))
    work = int(rows["work_ns"].sum())
    waits = host_waits_ns(tables, scope)
    share = 1.0 if waits is None or waits >= work else waits / work
    parts = [
        part.with_columns(
            idle_ns=pl.Series(
                covered(pace_idle(tables, thread, LAUNCH), part["ts_ns"].to_numpy(), part["end_ns"].to_numpy()),
                dtype=pl.Int64,
            )
        )
        for (thread,), part in rows.group_by("thread", maintain_order=True)
    ]
    if not parts:
        return rows.with_columns(cost_ns=pl.lit(0, pl.Int64))
    return pl.concat(parts).with_columns(cost_ns=(pl.col("work_ns") * share).round().cast(pl.Int64) + pl.col("idle_ns"))


def costliest(rows: pl.DataFrame, cost: str = "cost_ns", note: str = "costs {}") -> list[Evidence]:
    """The three costliest of some ops as evidence."""
    return [
        Evidence(event=row["name"], ts_ns=row["ts_ns"], dur_ns=row["dur_ns"], note=note.format(duration(row[cost])))
        for row in rows.sort(cost, "ts_ns", descending=[True, False]).head(3).iter_rows(named=True)
    ]
