"""Tables written by hand, row by row: what a rule sees, without any trace or analysis."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from slipstream.model import Integrity, Source
from slipstream.rules.registry import all_rules
from slipstream.rules.rule import require
from slipstream.store import DECLARED, DERIVED, Tables, Trace

MS = 1_000_000
Rows = Sequence[Mapping[str, Any]]
Recording = Callable[..., Tables]
Check = Callable[[str, Tables], list[Any]]


def _frame(name: str, rows: Rows) -> pl.DataFrame:
    return DECLARED[name].frame(pl.DataFrame(list(rows), infer_schema_length=None) if rows else {})


def build(
    *, device: str | None = "NVIDIA A100-SXM4-80GB", kind: str = "cuda", world_size: int | None = None, **rows: Rows
) -> Tables:
    """Tables with the given rows; derived tables that are left out have none.

    Args:
        device: name of the device.
        kind: its kind; ``cpu`` makes the main thread what counts.
        world_size: ranks of the job.
        rows: rows by table name; ``window`` overrides single fields of a window of four steps in 100 ms.
    """
    on_device = kind != "cpu"
    window = {
        "start_ns": 0,
        "end_ns": 100 * MS,
        "basis": "marks",
        "steps": 4,
        "on_device": on_device,
        "main_thread": 0,
        "busy_ns": 50 * MS,
        "idle_ns": 50 * MS,
    }
    derived = {table.name: _frame(table.name, rows.get(table.name, [])) for table in DERIVED}
    derived["window"] = _frame("window", [{**window, **dict(*rows.get("window", []))}])
    source = Source(
        path="a.json",
        format="kineto",
        origin_ns=None,
        device=device if on_device else None,
        device_kind=kind,  # type: ignore[arg-type]
        world_size=world_size,
    )
    base = {name: _frame(name, given) for name, given in rows.items() if DECLARED[name].kind != "derived"}
    trace = Trace(source, Integrity(grade="A"), base)
    return Tables(trace, {name: (lambda _, frame=frame: frame) for name, frame in derived.items()})


def apply(code: str, tables: Tables) -> list[Any]:
    """What a rule says, after making sure that it has what it needs, as the diagnosis does."""
    rule = all_rules()[code]
    require(type(rule), tables)
    return list(rule.check(tables))


@pytest.fixture
def recording() -> Recording:
    return build


@pytest.fixture
def check() -> Check:
    return apply
