"""Tables of the report, as rows that can be sorted and searched in the page."""

from collections.abc import Sequence

import msgspec
import polars as pl

from slipstream.model import Location
from slipstream.reports.names import short_name
from slipstream.reports.units import duration, percent
from slipstream.reports.wording import device_word, place
from slipstream.store import Report

MOST_ROWS = 200


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A value as it is shown and as it is sorted by."""

    text: str
    key: float | None = None
    """None: sorted as text."""
    full: str = ""
    """The whole text where ``text`` was shortened."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """A table."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]
    note: str = ""


def grids(report: Report) -> list[Grid]:
    """Ops, kernels, modules and collectives, as far as this recording tells them."""
    found = [_ops(report), _kernels(report), _modules(report), _collectives(report)]
    return [grid for grid in found if grid is not None and grid.rows]


def _ops(report: Report) -> Grid | None:
    if not report.tables.has("op_stats"):
        return None
    frame = report.tables["op_stats"]
    rows = [
        [
            _name(row["name"]),
            _count(row["count"]),
            _time(row["self_ns"]),
            _share(row["share"]),
            _time(row["host_total_ns"]),
            Cell(text=_place(row)),
        ]
        for row in frame.head(MOST_ROWS).iter_rows(named=True)
    ]
    own = f"{device_word(report)} time" if report.diagnosis.totals.gpu_events else "own time"
    columns = ("op", "calls", own, "share", "on the host in all", "where")
    return Grid(id="ops", title="Ops", columns=columns, rows=rows, note=_cut(frame))


def _kernels(report: Report) -> Grid | None:
    if not report.tables.has("kernel_stats"):
        return None
    frame = report.tables["kernel_stats"]
    rows = [
        [
            _name(row["name"]),
            Cell(text=str(row["kind"])),
            _count(row["count"]),
            _time(row["self_ns"]),
            _time(row["mean_ns"]),
            _share(row["share"]),
            Cell(text=_place(row)),
        ]
        for row in frame.head(MOST_ROWS).iter_rows(named=True)
    ]
    columns = ("kernel or copy", "kind", "times", "time", "mean", "share", "where")
    return Grid(id="kernels", title="Kernels and copies", columns=columns, rows=rows, note=_cut(frame))


def _modules(report: Report) -> Grid | None:
    if not report.tables.has("module_stats"):
        return None
    frame = report.tables["module_stats"]
    frame = frame.filter(pl.col("module").is_not_null())
    order = "device_total_ns" if report.diagnosis.totals.gpu_events else "host_total_ns"
    frame = frame.sort(order, descending=True, nulls_last=True)
    rows = [
        [
            _name(row["module"]),
            _count(row["calls"]),
            _time(row["host_total_ns"]),
            _time(row["device_total_ns"]),
            _time(row["backward_device_total_ns"]),
        ]
        for row in frame.head(MOST_ROWS).iter_rows(named=True)
    ]
    columns = ("module", "calls", "on the host", "forward on the device", "backward on the device")
    return Grid(id="module-table", title="Modules", columns=columns, rows=rows, note=_cut(frame))


def _collectives(report: Report) -> Grid | None:
    if not report.tables.has("exposed_collectives"):
        return None
    frame = report.tables["exposed_collectives"]
    rows = [
        [
            _name(row["operation"] or "not told"),
            Cell(text=str(row["group_name"] or "")),
            _count(row["group_size"]),
            _count(row["count"]),
            _count(row["in_elements"]),
            _time(row["comm_ns"]),
            _time(row["exposed_ns"]),
            _share(row["exposed_share"]),
        ]
        for row in frame.sort("exposed_ns", descending=True).head(MOST_ROWS).iter_rows(named=True)
    ]
    columns = ("collective", "group", "ranks", "times", "elements", "time", "not hidden", "share of it")
    return Grid(id="collectives", title="Communication", columns=columns, rows=rows, note=_cut(frame))


def _cut(frame: pl.DataFrame) -> str:
    return f"The first {MOST_ROWS} of {frame.height:,}." if frame.height > MOST_ROWS else ""


def _name(name: str) -> Cell:
    short = short_name(name, 64)
    return Cell(text=short, full=name if name != short else "")


def _count(value: int | None) -> Cell:
    return Cell(text="–" if value is None else f"{value:,}", key=float(value or 0))


def _time(ns: float | None) -> Cell:
    return Cell(text=duration(None if ns is None else round(ns)), key=float(ns or 0))


def _share(share: float | None) -> Cell:
    return Cell(text="–" if share is None else percent(share), key=float(share or 0))


def _place(row: dict[str, object]) -> str:
    if row.get("file") is None:
        return ""
    names: Sequence[str] = ("file", "line", "function", "precision")
    return place(msgspec.convert({name: row[name] for name in names}, Location), brief=True)
