"""The window: its extent, what counts as work, and the difference between idle and unknown."""

import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step


def test_marks_extended_to_the_last_work_launched_inside() -> None:
    tables = make_tables(
        steps=[step(1, 100, 100), step(2, 200, 100)],
        runtime=[
            span("cudaLaunchKernel", 50, 5, correlation=1),
            span("cudaLaunchKernel", 290, 5, correlation=2),
            span("cudaLaunchKernel", 300, 5, correlation=3),
        ],
        kernels=[
            span("warm-up", 60, 60, correlation=1),
            span("last", 280, 70, correlation=2),
            span("after", 400, 50, correlation=3),
        ],
    )
    row = tables.row("window")
    assert (row["start_ns"], row["end_ns"], row["basis"], row["steps"]) == (100, 350, "marks", 2)
    assert (row["busy_ns"], row["idle_ns"]) == (20 + 70, 250 - 90)
    assert tables["step_times"]["busy_ns"].to_list() == [20, 20]


def test_work_without_a_known_launch_that_began_inside_extends_it_too() -> None:
    tables = make_tables(steps=[step(1, 0, 100)], kernels=[span("k", 90, 40), span("later", 140, 40)])
    assert tables.row("window")["end_ns"] == 130


def test_steps_by_repetition_are_told_apart() -> None:
    tables = make_tables(steps=[step(0, 0, 10, inferred=True)], kernels=[span("k", 1, 2)])
    assert tables.row("window")["basis"] == "inferred"


def test_without_steps_it_is_the_whole_recording() -> None:
    tables = make_tables(ops=[span("a", 10, 20)], annotations=[span("mark", 5, 100)])
    row = tables.row("window")
    assert (row["start_ns"], row["end_ns"], row["basis"], row["steps"]) == (5, 105, "recording", None)
    with pytest.raises(NotEnoughData, match="no steps"):
        tables["step_times"]


def test_busy_is_the_union_on_the_device_with_most_work() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        kernels=[
            span("a", 0, 30),
            span("b", 20, 20, stream=9),
            span("inside", 21, 0),
            span("elsewhere", 50, 35, device=1),
        ],
        copies=[span("c", 90, 5)],
    )
    row = tables.row("window")
    assert (row["on_device"], row["busy_ns"], row["idle_ns"]) == (True, 45, 55)


def test_launches_without_any_kernel_are_unknown_never_idle() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        runtime=[span("cudaLaunchKernel", i, 1, correlation=i) for i in range(1, 90)],
        copies=[span("c", 90, 5, correlation=500)],
    )
    row = tables.row("window")
    assert row["on_device"] is True
    assert row["busy_ns"] is None
    assert row["idle_ns"] is None
    assert tables["step_times"]["busy_ns"].to_list() == [None]


def test_runtime_calls_that_launch_nothing_do_not_make_it_a_device_job() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)], runtime=[span("cudaGetDeviceCount", 5, 1)], ops=[span("aten::mm", 10, 30)]
    )
    row = tables.row("window")
    assert (row["on_device"], row["busy_ns"]) == (False, 30)


def test_on_the_cpu_busy_is_the_main_thread_inside_ops() -> None:
    tables = make_tables(
        steps=[step(1, 100, 100, thread=1)],
        ops=[
            span("aten::linear", 90, 30, thread=1),
            span("aten::addmm", 95, 20, thread=1),
            span("backward", 150, 20, thread=1),
            span("worker", 100, 90, thread=2),
            span("later", 190, 50, thread=1),
        ],
    )
    row = tables.row("window")
    assert (row["on_device"], row["main_thread"], row["end_ns"]) == (False, 1, 200)
    assert (row["busy_ns"], row["idle_ns"]) == (20 + 20 + 10, 50)


def test_main_thread_without_marks() -> None:
    ops = [span("aten::mm", 0, 50, thread=1), span("aten::mm", 0, 20, thread=2), span("aten::mm", 5, 5, thread=2)]
    runtime = [span("cudaLaunchKernel", i, 1, thread=2) for i in range(3)]
    runtime += [span("cudaGetDevice", i, 1, thread=1) for i in range(9)]
    assert make_tables(ops=ops).row("window")["main_thread"] == 1
    assert make_tables(ops=ops, runtime=runtime).row("window")["main_thread"] == 2
    assert make_tables(kernels=[span("k", 0, 5)]).row("window")["main_thread"] is None


def test_without_any_op_it_is_unknown_what_the_main_thread_did() -> None:
    row = make_tables(python=[span("train.py(1): f", 0, 50)]).row("window")
    assert (row["on_device"], row["end_ns"], row["busy_ns"], row["idle_ns"]) == (False, 50, None, None)


def test_an_empty_recording_has_an_empty_window() -> None:
    row = make_tables().row("window")
    assert (row["start_ns"], row["end_ns"], row["basis"]) == (0, 0, "recording")
    assert (row["main_thread"], row["busy_ns"]) == (None, None)
