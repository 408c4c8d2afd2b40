"""Whole stacks with their times."""

from slipstream.analysis import tables_of
from slipstream.reports import render
from slipstream.rules.diagnosis import diagnose
from support.tables import make_trace, span

HOST = make_trace(
    steps=[{"number": 0, "start_ns": 0, "dur_ns": 100_000}],
    python=[span("train.py(1): main", 0, 100_000), span("train.py(9): step", 10_000, 50_000)],
    ops=[span("aten::linear", 20_000, 30_000), span("aten::addmm", 25_000, 20_000)],
)
DEVICE = make_trace(
    steps=[{"number": 0, "start_ns": 0, "dur_ns": 100_000}],
    python=[span("train.py(1): main", 0, 100_000)],
    ops=[span("aten::mm; odd", 10_000, 10_000)],
    runtime=[
        span("cudaLaunchKernel", 12_000, 3_000, correlation=1),
        span("cudaLaunchKernel", 40_000, 1_000, correlation=2),
    ],
    kernels=[span("gemm", 20_000, 30_000, correlation=1), span("lost", 60_000, 10_000, correlation=9)],
)


def test_times_are_own_times_and_add_up() -> None:
    rows = dict(tables_of(HOST)["stacks"].select("stack", "self_ns").iter_rows())
    above = "train.py(1): main;train.py(9): step"
    assert rows == {
        "train.py(1): main": 50_000,
        above: 20_000,
        f"{above};aten::linear": 10_000,
        f"{above};aten::linear;aten::addmm": 20_000,
    }
    assert sum(rows.values()) == 100_000


def test_device_work_stands_below_the_op_that_launched_it() -> None:
    found = tables_of(DEVICE)["stacks"].filter(device_ns=30_000)["stack"].to_list()
    assert found == ["train.py(1): main;aten::mm, odd;gemm"]
    assert tables_of(DEVICE)["stacks"]["device_ns"].sum() == 40_000
    assert "(launch unknown);lost" in tables_of(DEVICE)["stacks"]["stack"].to_list()


def test_collapsed_lines() -> None:
    assert "train.py(1): main;train.py(9): step;aten::linear;aten::addmm 20\n" in render(diagnose(HOST), "collapsed")
    assert "train.py(1): main;aten::mm, odd;gemm 30\n" in render(diagnose(DEVICE), "collapsed")
