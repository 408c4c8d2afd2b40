"""Every idle nanosecond has one cause; small timelines whose answer is known by hand (times in us)."""

from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step

US = 1000
PYTHON_LOADER = "torch/utils/data/dataloader.py(733): __next__"


def causes(**tables: Any) -> dict[tuple[str, bool], int]:
    """Idle time in us by cause and whether it is inferred; checks that the parts add up to the idle time."""
    made = make_tables(**tables)
    spans = made["idle_spans"]
    assert spans["dur_ns"].sum() == made.row("window")["idle_ns"]
    assert (spans["dur_ns"] > 0).all()
    sums = spans.group_by("cause", "inferred").agg(pl.col("dur_ns").sum())
    return {(cause, inferred): ns // US for cause, inferred, ns in sums.iter_rows()}


def us(name: str, start: float, length: float, **columns: Any) -> dict[str, Any]:
    return span(name, int(start * US), int(length * US), **columns)


def launch(start: float, correlation: int, **columns: Any) -> dict[str, Any]:
    return us("cudaLaunchKernel", start, 5, correlation=correlation, **columns)


def kernel(start: float, length: float, correlation: int | None, **columns: Any) -> dict[str, Any]:
    return us("k", start, length, correlation=correlation, **columns)


ONE_STEP = [step(0, 0, 1000 * US)]
TWO_KERNELS = [kernel(0, 100, 1), kernel(600, 400, 2)]


def test_loader_gap_belongs_to_the_loader_and_the_rest_to_launching() -> None:
    answer = causes(
        steps=ONE_STEP,
        annotations=[us("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 50, 500)],
        ops=[us("aten::mm", 560, 30)],
        runtime=[launch(0, 1), launch(580, 2)],
        kernels=TWO_KERNELS,
    )
    # The device is free from 100; the loader is over at 550, the launch begins at 580, the kernel runs at 600.
    assert answer[("loader", False)] == 450
    assert answer[("launch", False)] + answer.get(("launch", True), 0) == 50


def test_gap_after_a_wait_is_the_waits_as_far_as_the_wait_was_long() -> None:
    tables = {
        "steps": ONE_STEP,
        "ops": [us("aten::item", 20, 130), us("aten::mm", 160, 436)],
        "runtime": [launch(0, 1), us("cudaStreamSynchronize", 30, 80), launch(590, 2)],
        "kernels": TWO_KERNELS,
    }
    answer = causes(**tables)
    # Blocked 30..110, of which 100..110 with an idle device: 70 of lost lead, so 80 us are due to the wait.
    assert answer[("sync", False)] == 80
    assert answer[("launch", False)] + answer.get(("launch", True), 0) == 500 - 80


def test_wait_behind_which_work_is_queued_costs_nothing() -> None:
    answer = causes(
        steps=ONE_STEP,
        ops=[us("aten::item", 20, 60)],
        runtime=[launch(0, 1), launch(8, 2), us("cudaEventSynchronize", 30, 40)],
        kernels=[kernel(10, 490, 1), kernel(500, 500, 2)],
    )
    assert ("sync", False) not in answer


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaMalloc", "allocator"),
        ("hipFree", "allocator"),
        ("cudaStreamBeginCapture", "graph_capture"),
        ("cudaGraphInstantiate", "graph_capture"),
        ("cudaFuncGetAttributes", "launch"),
    ],
)
def test_runtime_calls_name_the_cause(name: str, cause: str) -> None:
    answer = causes(
        steps=ONE_STEP,
        runtime=[launch(0, 1), us(name, 100, 480), launch(580, 2)],
        kernels=TWO_KERNELS,
    )
    assert answer[(cause, False)] >= 480


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ("torch/_inductor/compile_fx.py(900): compile_fx", "compile"),
        ("PIL/Image.py(200): resize", "preprocessing"),
        ("transformers/models/vit/image_processing_vit.py(9): preprocess", "preprocessing"),
        ("train.py(10): augment", "host"),
        (PYTHON_LOADER, "loader"),
    ],
)
def test_python_rows_name_the_cause(row: str, cause: str) -> None:
    answer = causes(
        steps=ONE_STEP,
        python=[us(row, 100, 480)],
        runtime=[launch(0, 1), launch(580, 2)],
        kernels=TWO_KERNELS,
    )
    assert answer[(cause, False)] == 480


def test_host_without_any_row_is_inferred() -> None:
    answer = causes(steps=ONE_STEP, runtime=[launch(0, 1), launch(580, 2)], kernels=TWO_KERNELS)
    assert answer[("host", True)] == 480


@pytest.mark.parametrize(("silence", "cause"), [(50, ("launch", True)), (51, ("host", True))])
def test_only_short_silence_is_part_of_launching(silence: int, cause: tuple[str, bool]) -> None:
    answer = causes(
        steps=ONE_STEP,
        ops=[us("aten::a", 0, 100), us("aten::b", 100 + silence, 900 - silence)],
        runtime=[launch(0, 1), launch(100 + silence, 2)],
        kernels=[kernel(0, 100, 1), kernel(100 + silence, 900 - silence, 2)],
    )
    assert answer == {cause: silence}


@pytest.mark.parametrize(("length", "cause"), [(1000, "launch"), (1001, "host")])
def test_a_call_that_holds_the_host_for_long_does_more_than_launch(length: int, cause: str) -> None:
    answer = causes(
        steps=[step(0, 0, 5000 * US)],
        runtime=[launch(0, 1), us("cudaModuleLoadData", 100, length), launch(100 + length, 2)],
        kernels=[kernel(0, 100, 1), kernel(105 + length, 4895 - length, 2)],
    )
    assert answer.get((cause, False), 0) >= length


def test_a_launch_that_takes_long_itself_is_not_queued_work() -> None:
    answer = causes(
        steps=ONE_STEP,
        runtime=[launch(0, 1), us("cudaLaunchKernel", 90, 505, correlation=2)],
        kernels=TWO_KERNELS,
    )
    assert answer == {("launch", False): 500}


@pytest.mark.parametrize(("gap", "cause"), [(50, "launch"), (51, "unattributed")])
def test_queued_work_waits_for_scheduling_only_for_so_long(gap: int, cause: str) -> None:
    answer = causes(
        steps=ONE_STEP,
        runtime=[launch(0, 1), launch(10, 2)],
        kernels=[kernel(0, 100, 1), kernel(100 + gap, 900 - gap, 2)],
    )
    assert answer == {(cause, False): gap}


def test_queued_work_that_stands_still_while_the_main_thread_waits_is_inferred_sync() -> None:
    answer = causes(
        steps=ONE_STEP,
        runtime=[launch(0, 1), launch(10, 2), us("cudaDeviceSynchronize", 50, 900)],
        kernels=[kernel(0, 100, 1), kernel(400, 600, 2)],
    )
    assert answer == {("sync", True): 300}


def test_silent_backward_thread_shows_what_the_main_thread_did() -> None:
    answer = causes(
        steps=ONE_STEP,
        annotations=[us("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100, 400)],
        runtime=[launch(0, 1), launch(580, 2, thread=9)],
        kernels=TWO_KERNELS,
    )
    assert answer[("loader", False)] == 400


def test_loader_asked_after_the_last_launch_is_the_end_of_data() -> None:
    answer = causes(
        steps=ONE_STEP,
        annotations=[us("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 700, 100)],
        runtime=[launch(0, 1)],
        kernels=[kernel(5, 595, 1)],
    )
    assert answer[("end_of_data", False)] == 100
    assert ("loader", False) not in answer


def test_long_cpu_op_without_device_work_is_preprocessing() -> None:
    answer = causes(
        steps=ONE_STEP,
        ops=[us("aten::stack", 100, 400), us("aten::mm", 570, 20)],
        runtime=[launch(0, 1), launch(580, 2)],
        kernels=TWO_KERNELS,
    )
    assert answer[("preprocessing", False)] == 400


def test_unlinked_work_still_gets_a_cause_from_the_main_thread() -> None:
    answer = causes(
        steps=ONE_STEP,
        python=[us("train.py(3): loop", 0, 1000)],
        kernels=[kernel(0, 100, None), kernel(600, 400, None)],
    )
    assert answer == {("host", False): 500}


def test_device_rows_alone_cannot_tell_a_cause() -> None:
    answer = causes(kernels=[kernel(0, 100, None), kernel(600, 400, None)])
    assert answer == {("unattributed", False): 500}


def test_missing_kernels_are_unknown_not_idle() -> None:
    made = make_tables(steps=ONE_STEP, runtime=[launch(10 * place, place + 1) for place in range(9)])
    with pytest.raises(NotEnoughData):
        made["idle_spans"]


class TestMainThread:
    """Without a device the main thread outside ops is what is explained."""

    def test_loader_collector_and_python(self) -> None:
        answer = causes(
            steps=ONE_STEP,
            ops=[us("aten::mm", 500, 300)],
            annotations=[us("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 300)],
            gc_pauses=[{"step": 0, "start_ns": 850 * US, "dur_ns": 40 * US, "generation": 2}],
            python=[us("train.py(1): main", 0, 1000)],
        )
        assert answer == {("loader", False): 300, ("gc", False): 40, ("host", False): 360}

    def test_without_python_rows_the_host_is_inferred(self) -> None:
        assert causes(steps=ONE_STEP, ops=[us("aten::mm", 500, 300)]) == {("host", True): 700}


@pytest.mark.parametrize(
    ("name", "own", "cause"),
    [("aten::cat", 50, "preprocessing"), ("aten::cat", 49, "launch"), ("aten::view", 90, "launch")],
)
def test_only_ops_that_compute_on_the_host_are_preprocessing(name: str, own: int, cause: str) -> None:
    """Handles of tensors are bookkeeping, and so is an op whose time lies in many short ones inside."""
    answer = causes(
        steps=ONE_STEP,
        ops=[us("aten::unflatten_dense_tensors", 100, 400), us(name, 110, own), us("aten::mm", 570, 20)]
        + [us("aten::as_strided", 210 + 10 * place, 10) for place in range(29)],
        runtime=[launch(0, 1), launch(580, 2)],
        kernels=TWO_KERNELS,
    )
    assert answer.get(("preprocessing", False), 0) == (own if cause == "preprocessing" else 0)
