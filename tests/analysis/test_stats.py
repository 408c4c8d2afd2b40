"""Tables by name: op_stats and kernel_stats."""

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step


def test_ops_by_device_time_with_their_most_costly_place() -> None:
    tables = make_tables(
        steps=[step(1, 100, 900)],
        python=[span("a.py(1): cheap", 100, 100), span("b.py(2): dear", 300, 300)],
        ops=[
            span("aten::mm", 50, 10),
            span("aten::mm", 110, 20),
            span("aten::mm", 310, 20),
            span("aten::t", 400, 90),
        ],
        runtime=[span("cudaLaunchKernel", ts, 2, correlation=ts) for ts in (55, 115, 315)],
        kernels=[span("k", ts + 10, 10 * place, correlation=ts) for place, ts in enumerate((55, 115, 315), 1)],
    )
    rows = tables["op_stats"].rows(named=True)
    assert [row["name"] for row in rows] == ["aten::mm", "aten::t"]
    mm = rows[0]
    assert (mm["count"], mm["self_ns"], mm["device_self_ns"], mm["host_self_ns"]) == (2, 50, 50, 40)
    assert mm["share"] == 1.0
    assert (mm["file"], mm["line"], mm["function"], mm["precision"]) == ("b.py", 2, "dear", "function")
    kernels = tables["kernel_stats"].rows(named=True)
    assert [(row["name"], row["kind"], row["count"], row["self_ns"], row["mean_ns"]) for row in kernels] == [
        ("k", "kernel", 2, 50, 25.0)
    ]
    assert kernels[0]["file"] == "b.py"


def test_without_a_device_own_time_ranks_and_recursion_counts_once() -> None:
    tables = make_tables(
        ops=[span("f", 0, 100), span("g", 10, 80), span("f", 20, 30), span("f", 60, 10), span("f", 200, 7)]
    )
    rows = {row["name"]: row for row in tables["op_stats"].iter_rows(named=True)}
    assert rows["f"]["host_total_ns"] == 107
    assert rows["f"]["self_ns"] == rows["f"]["host_self_ns"] == 20 + 30 + 10 + 7
    assert rows["g"]["host_total_ns"] == 80
    assert rows["f"]["device_self_ns"] is None
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1.0)


def test_device_work_that_no_op_is_linked_to_does_not_turn_op_times_into_zero() -> None:
    tables = make_tables(ops=[span("f", 0, 100)], kernels=[span("k", 10, 50)])
    row = tables["op_stats"].row(0, named=True)
    assert (row["self_ns"], row["device_self_ns"]) == (100, None)


def test_kernels_copies_and_sets_by_name_the_most_first() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        kernels=[span("k", 0, 10), span("k", 20, 30), span("nccl", 60, 70, collective=True), span("k", 2_000, 500)],
        copies=[span("Memcpy HtoD", 200, 5)],
        sets=[span("Memset", 300, 1)],
    )
    rows = tables["kernel_stats"].select("name", "kind", "count", "self_ns").rows()
    assert rows == [
        ("nccl", "collective", 1, 70),
        ("k", "kernel", 2, 40),
        ("Memcpy HtoD", "copy", 1, 5),
        ("Memset", "set", 1, 1),
    ]
    assert tables["kernel_stats"]["share"].sum() == pytest.approx(1.0)


def test_no_device_work_is_not_an_empty_table() -> None:
    with pytest.raises(NotEnoughData, match="no device work"):
        make_tables(ops=[span("f", 0, 100)])["kernel_stats"]


def test_a_name_without_a_known_place_has_none() -> None:
    tables = make_tables(kernels=[span("k", 0, 10)])
    assert tables["kernel_stats"].select(pl.col("file", "line", "function", "precision")).row(0) == (None,) * 4
