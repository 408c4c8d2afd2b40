"""Small recordings written inline.

    make_trace(
        steps=[{"number": 0, "start_ns": 0, "dur_ns": 100}],
        ops=[span("aten::mm", 10, 20)],
        runtime=[span("cudaLaunchKernel", 15, 3, correlation=1)],
        kernels=[span("gemm", 40, 30, correlation=1)],
    )

Only what matters to a test needs to be named; see ``DEFAULTS`` for the rest. ``event`` counts up over the tables in
the order in which they are given; ``events`` and ``threads`` are made from the other tables unless given.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from slipstream.analysis import tables_of
from slipstream.model import Integrity, Source
from slipstream.model.diagnosis import DeviceKind, Grade, TraceFormat
from slipstream.store import DECLARED, Tables, Trace

Row = Mapping[str, Any]

DEFAULTS: Mapping[str, Any] = {
    "name": "x",
    "thread": 0,
    "ts_ns": 0,
    "dur_ns": 0,
    "start_ns": 0,
    "device": 0,
    "stream": 7,
    "collective": False,
    "on_device": False,
    "inferred": False,
    "kind": "ac2g",
    "start": False,
    "source": "name",
}
"""Values of columns that a row leaves out; every other column is null."""
OF_TABLE: Mapping[str, Mapping[str, Any]] = {
    "copies": {"kind": None},
    "memory": {"size_bytes": 0},
    "counters": {"dur_ns": None},
}
"""Where a table differs from ``DEFAULTS``."""
CATEGORIES = {
    "ops": "cpu_op",
    "python": "python_function",
    "runtime": "cuda_runtime",
    "kernels": "kernel",
    "copies": "gpu_memcpy",
    "sets": "gpu_memset",
    "syncs": "cuda_sync",
    "annotations": "user_annotation",
}


def span(name: str, ts_ns: int, dur_ns: int, **columns: object) -> dict[str, Any]:
    """A row with a name, a start and a duration."""
    return {"name": name, "ts_ns": ts_ns, "dur_ns": dur_ns, **columns}


def step(number: int, start_ns: int, dur_ns: int, **columns: object) -> dict[str, Any]:
    """A row of ``steps``."""
    return {"number": number, "start_ns": start_ns, "dur_ns": dur_ns, **columns}


def make_trace(
    *,
    path: str = "inline.json",
    format: TraceFormat = "kineto",
    device_kind: DeviceKind | None = None,
    device: str | None = None,
    torch_version: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    grade: Grade = "A",
    element_count: int | None = None,
    packages: Iterable[str] | None = None,
    **tables: Iterable[Row],
) -> Trace:
    """A recording from rows by table name.

    Args:
        path: where it claims to come from.
        format: what it claims to be.
        device_kind: None: cuda where there are rows of a device or its runtime, else cpu.
        device: vendor's name.
        torch_version: as recorded.
        rank: rank.
        world_size: ranks.
        grade: grade of its integrity.
        element_count: None: the number of rows.
        packages: installed packages of a live capture.
        tables: rows of any recorded or measured table, by its name.
    Raises:
        ValueError: a row names a column that its table does not declare.
    """
    rows = {name: [dict(row) for row in given] for name, given in tables.items()}
    _number(rows)
    frames = {name: _frame(name, given) for name, given in rows.items()}
    frames.setdefault("events", _events(frames))
    frames.setdefault("threads", _threads(frames))
    on_device = any(rows.get(name) for name in ("kernels", "copies", "sets", "runtime"))
    source = Source(
        path=path,
        format=format,
        origin_ns=None,
        torch_version=torch_version,
        device=device,
        device_kind=device_kind or ("cuda" if on_device else "cpu"),
        rank=rank,
        world_size=world_size,
    )
    return Trace(
        source,
        Integrity(grade=grade),
        frames,
        element_count=element_count,
        packages=None if packages is None else frozenset(packages),
    )


def make_tables(**arguments: Any) -> Tables:
    """All tables, derived ones included, of ``make_trace`` with the same arguments."""
    return tables_of(make_trace(**arguments))


def _number(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    taken = {row["event"] for given in rows.values() for row in given if "event" in row}
    free = (number for number in range(1 << 31) if number not in taken)
    for name, given in rows.items():
        if "event" in DECLARED[name].schema:
            for row in given:
                row.setdefault("event", next(free))


def _frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    table = DECLARED[name]
    unknown = {column for row in rows for column in row} - set(table.schema)
    if unknown:
        raise ValueError(f"table {name} declares no column {', '.join(sorted(unknown))}")
    defaults = {**DEFAULTS, **OF_TABLE.get(name, {})}
    columns = {
        column: pl.Series(column, [row.get(column, defaults.get(column)) for row in rows], dtype)
        for column, dtype in table.schema.items()
    }
    return pl.DataFrame(columns)


def _events(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    parts = [
        frames[name].select(
            "event",
            pl.lit("X").alias("phase"),
            pl.lit(category).alias("category"),
            "name",
            "thread" if "thread" in frames[name].columns else pl.lit(None).alias("thread"),
            "ts_ns",
            "dur_ns",
        )
        for name, category in CATEGORIES.items()
        if name in frames and frames[name].height
    ]
    schema = DECLARED["events"].schema
    cast = [part.select(pl.col(column).cast(dtype) for column, dtype in schema.items()) for part in parts]
    return pl.concat(cast).sort("event") if cast else DECLARED["events"].empty()


def _threads(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    numbers = {number for frame in frames.values() if "thread" in frame.columns for number in frame["thread"]}
    known = sorted(number for number in numbers if number is not None)
    return DECLARED["threads"].frame(
        {"thread": known, "pid": ["1"] * len(known), "tid": [str(number) for number in known]}
    )
