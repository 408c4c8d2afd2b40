"""Loader waits from three sources, each wait once (times in ns)."""

from typing import Any

import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
METHOD = "torch/utils/data/dataloader.py(733): __next__"
STEP = [step(0, 0, 10_000_000)]


def wait(start_ns: int, dur_ns: int, **columns: Any) -> dict[str, Any]:
    return {
        "step": 0,
        "start_ns": start_ns,
        "dur_ns": dur_ns,
        "workers": 0,
        "first": False,
        "pin_memory": False,
        **columns,
    }


def spans(**tables: Any) -> list[dict[str, Any]]:
    return make_tables(steps=STEP, **tables)["loader_spans"].rows(named=True)


def test_one_wait_seen_by_all_three_is_one_span_with_the_statement() -> None:
    (row,) = spans(
        annotations=[span(SINGLE, 1_000, 500_000)],
        python=[span("train.py(5): main", 0, 9_000_000), span(METHOD, 900, 500_200)],
        loader_waits=[wait(800, 500_400, file="train.py", line=9, function="main")],
    )
    assert (row["start_ns"], row["dur_ns"], row["source"]) == (1_000, 500_000, "annotation")
    assert (row["file"], row["line"], row["function"], row["precision"]) == ("train.py", 9, "main", "statement")
    assert row["single_process"] is True


def test_without_a_measurement_the_place_is_the_function_around() -> None:
    (row,) = spans(
        python=[
            span("train.py(5): main", 0, 9_000_000),
            span("train.py(2): batches", 500, 600_000),
            span(METHOD, 900, 500_200),
        ],
    )
    assert (row["source"], row["line"], row["function"], row["precision"]) == ("python", 2, "batches", "function")


def test_old_call_stacks_name_who_asked_the_loader_not_what_runs_inside() -> None:
    stack = "data.py(7): __getitem__;/x/torch/utils/data/dataloader.py(518): __next__;train.py(42): <module>"
    (row,) = spans(annotations=[span(SINGLE, 1_000, 500)], ops=[span("aten::empty", 1_100, 10, call_stack=stack)])
    assert (row["file"], row["line"], row["function"]) == ("train.py", 42, "<module>")


def test_nested_loaders_count_once() -> None:
    rows = spans(annotations=[span(WORKERS, 1_000, 500), span(SINGLE, 1_100, 200), span(WORKERS, 2_000, 100)])
    assert [(row["start_ns"], row["single_process"]) for row in rows] == [(1_000, False), (2_000, False)]


def test_idle_is_what_the_device_did_not_do_meanwhile() -> None:
    (row,) = spans(
        annotations=[span(SINGLE, 1_000, 1_000)],
        runtime=[span("cudaLaunchKernel", 100, 5, correlation=1)],
        kernels=[span("k", 200, 1_100, correlation=1)],
    )
    assert row["idle_ns"] == 700


def test_on_the_main_thread_all_of_the_wait_counts_even_with_ops_inside() -> None:
    (row,) = spans(annotations=[span(SINGLE, 1_000, 1_000)], ops=[span("aten::stack", 1_200, 300)])
    assert row["idle_ns"] == 1_000


def test_no_loader_is_an_answer_and_no_host_rows_is_none() -> None:
    assert spans(ops=[span("aten::mm", 0, 10)]) == []
    with pytest.raises(NotEnoughData):
        spans(kernels=[span("k", 0, 10)])
