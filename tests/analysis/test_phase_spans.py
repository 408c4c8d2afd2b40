"""Phases on the host, and what each of them costs."""

from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from slipstream.store import Tables
from support.tables import make_tables, span, step


def spans(tables: Tables) -> list[tuple[Any, ...]]:
    rows = tables["phase_spans"].with_columns(pl.col(pl.Categorical).cast(pl.String))
    return rows.select(
        "phase", "step", "start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end"), "basis"
    ).rows()


def test_ranges_of_torch_and_of_people_the_inner_one_wins() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        annotations=[
            span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 10),
            span("## forward ##", 5, 45),
            span("Optimizer.zero_grad#SGD.zero_grad", 20, 5),
            span("## backward ##", 50, 30),
            span("Optimizer.step#SGD.step", 80, 15),
            span("Optimizer.step#SGD.step", 80, 15, on_device=True),
            span("forward_hook_of_mine", 96, 2),
        ],
    )
    assert spans(tables) == [
        ("data", 1, 0, 10, "annotation"),
        ("forward", 1, 10, 20, "annotation"),
        ("zero_grad", 1, 20, 25, "annotation"),
        ("forward", 1, 25, 50, "annotation"),
        ("backward", 1, 50, 80, "annotation"),
        ("optimizer", 1, 80, 95, "annotation"),
    ]


def test_without_ranges_autograd_tells_and_accumulation_is_not_one_backward() -> None:
    def forward(ts_ns: int) -> dict[str, Any]:
        return span("aten::mm", ts_ns, 10, sequence=ts_ns, fwd_thread=0)

    def backward(ts_ns: int) -> dict[str, Any]:
        return span("MmBackward0", ts_ns, 10, sequence=ts_ns, fwd_thread=1, thread=5)

    tables = make_tables(
        steps=[step(1, 0, 100), step(2, 100, 100)],
        ops=[
            *(forward(ts) for ts in (10, 25, 60, 110)),
            *(backward(ts) for ts in (40, 48, 75, 130)),
            # A checkpoint computes its forward again, inside the backward node.
            span("aten::mm", 50, 5, sequence=3, fwd_thread=0, thread=5),
            span("aten::mul_", 85, 10),
        ],
    )
    assert spans(tables) == [
        ("forward", 1, 10, 35, "ops"),
        ("backward", 1, 40, 58, "ops"),
        ("forward", 1, 60, 70, "ops"),
        ("backward", 1, 75, 85, "ops"),
        ("forward", 2, 110, 120, "ops"),
        ("backward", 2, 130, 140, "ops"),
    ]


def test_measured_phases_beat_what_is_inferred_and_calls_beat_ops() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        phases=[{"step": 0, "phase": "optimizer", "start_ns": 70, "dur_ns": 20}],
        python=[
            span("nn.Module: Net_0", 10, 20),
            span("nn.Module: Linear_0", 12, 5),
            span("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", 40, 40),
        ],
        ops=[span("MmBackward0", 35, 10, fwd_thread=1, sequence=1)],
    )
    assert spans(tables) == [
        ("forward", 1, 10, 30, "module"),
        ("backward", 1, 40, 70, "call"),
        ("optimizer", 1, 70, 90, "measured"),
    ]


def test_ops_with_a_graph_and_no_backward_after_them_are_no_training() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        ops=[
            span("aten::mm", 10, 10, sequence=1, fwd_thread=0),
            span("MmBackward0", 30, 10, sequence=1, fwd_thread=1),
            span("aten::accuracy", 60, 10, sequence=2, fwd_thread=0),
        ],
        annotations=[span("Optimizer.zero_grad#SGD.zero_grad", 22, 5)],
    )
    assert spans(tables) == [
        ("forward", 1, 10, 20, "ops"),
        ("zero_grad", 1, 22, 27, "annotation"),
        ("backward", 1, 30, 40, "ops"),
    ]


def test_nothing_tells_phases() -> None:
    tables = make_tables(ops=[span("aten::mm", 0, 10)])
    for name in ("phase_spans", "phase_stats"):
        with pytest.raises(NotEnoughData, match="phases"):
            tables[name]


def test_device_work_belongs_to_the_phase_that_launched_it_and_all_of_it_is_told() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100), step(2, 100, 100)],
        annotations=[span("forward", 10, 30), span("backward", 40, 90)],
        runtime=[span("cudaLaunchKernel", ts, 2, correlation=ts) for ts in (20, 50, 52, 190)],
        kernels=[
            span("a", 105, 10, correlation=20),
            span("b", 120, 10, correlation=50),
            span("c", 125, 10, correlation=52, stream=9),
            span("d", 195, 1, correlation=190),
            span("unlinked", 198, 3),
        ],
    )
    rows = tables["phase_stats"].with_columns(pl.col("phase").cast(pl.String)).rows()
    assert rows == [
        (1, "backward", 60, 20, 15),
        (1, "forward", 30, 10, 10),
        (2, "backward", 30, 0, 0),
        (2, None, None, 1, 1),
        (None, None, None, 3, 3),
    ]


def test_time_outside_every_step_is_a_row_and_a_cpu_has_no_device_time() -> None:
    tables = make_tables(steps=[step(1, 0, 100)], annotations=[span("Optimizer.step#SGD.step", 90, 30)])
    assert tables["phase_stats"].select("step", "host_ns", "device_ns").rows() == [(1, 10, None), (None, 20, None)]
