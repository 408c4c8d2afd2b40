"""Ops and kernels by name, shapes, module and place."""

import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step

SMALL, LARGE = "[[2,3],[3,4]]", "[[20,30],[30,40]]"


def test_shapes_are_apart_however_they_are_written_and_figures_are_those_of_the_events() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        python=[span("a.py(3): f", 0, 500), span("nn.Module: Net_0", 0, 300)],
        ops=[
            span("aten::mm", 10, 10, input_dims=SMALL),
            span("aten::mm", 30, 20, input_dims="[\n  [2,\n 3], [3, 4]\n]"),
            span("aten::mm", 100, 60, input_dims=LARGE),
            span("aten::mm", 400, 10, input_dims=SMALL),
            span("aten::mm", 2_000, 10, input_dims=SMALL),
        ],
        runtime=[span("cudaLaunchKernel", ts, 2, correlation=ts) for ts in (15, 35, 110, 405)],
        kernels=[span("gemm", 600 + ts, dur, correlation=ts) for ts, dur in ((15, 4), (35, 8), (110, 50), (405, 1))],
    )
    rows = tables["op_groups"].rows(named=True)
    assert [(row["input_dims"], row["module"], row["count"], row["device_self_ns"]) for row in rows] == [
        (LARGE, "Net_0", 1, 50),
        (SMALL, "Net_0", 2, 12),
        (SMALL, None, 1, 1),
    ]
    small = rows[1]
    assert (small["mean_ns"], small["median_ns"], small["max_ns"], small["std_ns"]) == (15.0, 15.0, 20, 5.0)
    assert (small["device_mean_ns"], small["device_max_ns"], small["device_std_ns"]) == (6.0, 8, 2.0)
    assert (small["file"], small["line"], small["function"]) == ("a.py", 3, "f")
    kernels = tables["kernel_groups"].rows(named=True)
    assert [(row["op"], row["input_dims"], row["module"], row["sum_ns"]) for row in kernels] == [
        ("aten::mm", LARGE, "Net_0", 50),
        ("aten::mm", SMALL, "Net_0", 12),
        ("aten::mm", SMALL, None, 1),
    ]
    assert kernels[1]["std_ns"] == 2.0
    assert sum(row["share"] for row in kernels) == pytest.approx(1.0)


def test_own_time_is_never_more_than_the_whole() -> None:
    tables = make_tables(
        ops=[
            span("f", 0, 100, input_dims=SMALL),
            span("f", 10, 50, input_dims=LARGE),
            span("f", 20, 10, input_dims=SMALL),
            span("g", 70, 5),
        ]
    )
    rows = {(row["name"], row["input_dims"]): row for row in tables["op_groups"].iter_rows(named=True)}
    assert (rows["f", SMALL]["host_total_ns"], rows["f", SMALL]["host_self_ns"]) == (100, 55)
    assert (rows["f", LARGE]["host_total_ns"], rows["f", LARGE]["host_self_ns"]) == (50, 40)
    assert rows["f", SMALL]["device_self_ns"] is None
    assert all(row["host_self_ns"] <= row["host_total_ns"] for row in rows.values())


def test_unlinked_kernels_stay_and_carry_over_counts_where_it_started() -> None:
    tables = make_tables(
        steps=[step(1, 100, 100)], kernels=[span("k", 50, 100), span("k", 150, 100), span("tiny", 160, 0)]
    )
    rows = tables["kernel_groups"].rows(named=True)
    assert [(row["name"], row["op"], row["count"], row["sum_ns"]) for row in rows] == [
        ("k", None, 1, 100),
        ("tiny", None, 1, 0),
    ]
    with pytest.raises(NotEnoughData):
        make_tables(ops=[span("f", 0, 1)])["kernel_groups"]
