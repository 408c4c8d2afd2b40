"""Memory in use over time, and what was in use at the peak."""

from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from slipstream.store import Tables
from support.tables import make_tables, span, step


def change(ts_ns: int, size_bytes: int, address: int | None, allocated: int | None = None) -> dict[str, Any]:
    return {
        "ts_ns": ts_ns,
        "size_bytes": size_bytes,
        "address": address,
        "allocated_bytes": allocated,
        "device_type": 1,
        "device": 0,
    }


def peak(tables: Tables) -> list[tuple[Any, ...]]:
    rows = tables["memory_peak"].with_columns(pl.col(pl.Categorical).cast(pl.String))
    return rows.select("origin", "phase", "op", "count", "live_bytes").rows()


def test_the_peak_adds_up_by_phase_and_op_with_what_was_there_before() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        annotations=[span("forward", 10, 40), span("backward", 50, 40)],
        ops=[
            span("aten::mm", 10, 10),
            span("aten::empty", 12, 2),
            span("aten::mm", 60, 10),
            span("aten::empty", 90, 9),
        ],
        memory=[
            change(13, 40, 1, 140),
            change(20, 30, 2, 170),
            change(25, -30, 2, 140),
            change(61, 20, 2, 160),
            change(62, 25, 3, 185),
            change(70, -40, 1, 145),
            change(95, 5, 4, 150),
        ],
    )
    assert peak(tables) == [
        ("before_recording", None, None, None, 100),
        ("recording", "backward", "aten::mm", 2, 45),
        ("recording", "forward", "aten::mm", 1, 40),
    ]
    row = tables["memory_peak"].row(0, named=True)
    assert (row["peak_ns"], row["peak_bytes"]) == (62, 185)
    assert tables["memory_peak"]["live_bytes"].sum() == 185
    assert tables["memory_peak"]["share"].sum() == pytest.approx(1)
    timeline = tables["memory_timeline"].with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert timeline["freed_ns"].to_list() == [70, 25, None, None, None, None, None]
    # aten::empty allocates for the op around it; by itself it is the one.
    assert timeline["op"].to_list() == ["aten::mm", None, None, "aten::mm", "aten::mm", None, "aten::empty"]
    assert timeline["relative"].any() is False


def test_without_totals_it_counts_from_the_start_of_the_recording() -> None:
    tables = make_tables(memory=[change(1, 10, 7), change(5, -100, 3), change(9, 20, 8)], ops=[span("f", 0, 20)])
    assert tables["memory_timeline"].select("allocated_bytes", "relative").rows() == [
        (10, True),
        (-90, True),
        (-70, True),
    ]
    assert peak(tables) == [("recording", None, "f", 1, 10), ("before_recording", None, None, None, 0)]


def test_devices_are_apart_and_an_address_that_is_used_again_is_another_allocation() -> None:
    tables = make_tables(
        memory=[
            change(1, 10, 7, 10),
            change(2, -10, 7, 0),
            change(3, 10, 7, 10),
            change(4, 50, 9, 60) | {"device": 1},
            change(5, -10, 7, 0),
        ],
        ops=[span("f", 0, 20)],
    )
    assert tables["memory_timeline"]["freed_ns"].to_list() == [2, None, 5, None, None]
    rows = tables["memory_peak"].filter(pl.col("origin").cast(pl.String) == "recording")
    assert rows.select("device", "peak_bytes", "live_bytes").rows() == [(0, 10, 10), (1, 60, 50)]


def test_moments_that_share_a_time_keep_their_order() -> None:
    tables = make_tables(
        memory=[change(5, 10, 1, 10), change(5, -10, 1, 0), change(5, 10, 2, 10)], ops=[span("f", 0, 20)]
    )
    assert tables["memory_peak"]["peak_bytes"][0] == 10
    assert tables["memory_peak"].filter(pl.col("count").is_not_null())["count"].to_list() == [1]


def test_not_recorded_or_without_addresses() -> None:
    for name in ("memory_timeline", "memory_peak"):
        with pytest.raises(NotEnoughData, match="profile_memory"):
            make_tables(ops=[span("f", 0, 1)])[name]
    old = make_tables(memory=[change(1, 10, None)], ops=[span("f", 0, 20)])
    assert old["memory_timeline"].height == 1
    with pytest.raises(NotEnoughData, match="addresses"):
        old["memory_peak"]
