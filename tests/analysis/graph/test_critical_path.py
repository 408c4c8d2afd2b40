"""Paths known by hand, from recordings of a few rows; all times in ns."""

from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from slipstream.store import Tables
from support.tables import make_tables, span, step

US = 1_000


def path(tables: Tables) -> list[tuple[str, int, int]]:
    frame = tables["critical_path"].with_columns(pl.col("kind").cast(pl.String))
    return [tuple(row) for row in frame.select("kind", "start_ns", "dur_ns").iter_rows()]


def launched(*, sync_until: int = 60_000) -> dict[str, Any]:
    """An op launches a kernel, the host waits for it."""
    return {
        "steps": [step(3, 0, 70_000)],
        "ops": [span("aten::mm", 0, 20_000)],
        "runtime": [
            span("cudaLaunchKernel", 5_000, 5_000, correlation=1),
            span("cudaDeviceSynchronize", 20_000, sync_until - 20_000),
        ],
        "kernels": [span("gemm", 12_000, 40_000, correlation=1)],
    }


def test_host_launch_kernel_and_the_wait_for_it() -> None:
    tables = make_tables(**launched())
    assert path(tables) == [
        ("gap", 0, 5_000),  # the op before it launches
        ("runtime", 5_000, 5_000),
        ("latency", 10_000, 2_000),
        ("kernel", 12_000, 40_000),
        ("sync", 52_000, 8_000),  # of the call what comes after its wait
        ("gap", 60_000, 10_000),  # until the mark
    ]
    frame = tables["critical_path"]
    assert frame["step"].to_list() == [3] * 6
    assert frame["name"].cast(pl.String).to_list()[:4] == ["aten::mm", "cudaLaunchKernel", "gemm", "gemm"]
    assert frame["resource"].cast(pl.String).to_list()[3:5] == ["device 0 stream 7", "thread 0"]


def test_a_wait_for_work_that_had_ended_is_the_hosts_own_time() -> None:
    rows = launched()
    rows["kernels"] = [span("gemm", 12_000, 4_000, correlation=1)]
    assert [kind for kind, _, _ in path(make_tables(**rows))] == ["gap", "runtime", "gap", "runtime", "gap"]


def test_of_two_queued_kernels_the_second_waited_for_the_first() -> None:
    tables = make_tables(
        steps=[step(0, 0, 100_000)],
        ops=[span("aten::mm", 0, 10_000)],
        runtime=[
            span("cudaLaunchKernel", 0, 3_000, correlation=1),
            span("cudaLaunchKernel", 5_000, 3_000, correlation=2),
            span("cudaStreamSynchronize", 10_000, 88_000),
        ],
        kernels=[span("a", 6_000, 50_000, correlation=1), span("b", 57_000, 40_000, correlation=2)],
    )
    assert path(tables) == [
        ("runtime", 0, 3_000),
        ("latency", 3_000, 3_000),
        ("kernel", 6_000, 50_000),
        ("latency", 56_000, 1_000),
        ("kernel", 57_000, 40_000),
        ("sync", 97_000, 1_000),
        ("gap", 98_000, 2_000),
    ]


def test_a_kernel_that_begins_before_its_call_returns() -> None:
    rows = launched()
    rows["kernels"] = [span("gemm", 8_000, 44_000, correlation=1)]
    assert path(make_tables(**rows))[:3] == [("gap", 0, 5_000), ("runtime", 5_000, 3_000), ("kernel", 8_000, 44_000)]


def test_an_edge_that_the_recording_contradicts_is_dropped_and_counted() -> None:
    rows = launched()
    rows["kernels"] = [span("gemm", 4_000, 48_000, correlation=1)]
    tables = make_tables(**rows)
    edges = {str(row["kind"]): row for row in tables["graph_edges"].iter_rows(named=True)}
    assert (edges["launch"]["edges"], edges["launch"]["dropped"]) == (0, 1)
    assert sum(row["dropped"] for row in edges.values()) == 1


def test_queued_work_that_begins_late_for_no_known_reason_is_unexplained() -> None:
    rows = launched(sync_until=460_000)
    rows["steps"] = [step(3, 0, 470_000)]
    rows["kernels"] = [span("gemm", 12_000 + 300 * US, 40_000, correlation=1)]
    found = path(make_tables(**rows))
    assert ("unexplained", 10_000, 302_000) in found


@pytest.mark.parametrize(("latency", "kind"), [(50_000, "latency"), (50_001, "unexplained")])
def test_where_latency_ends(latency: int, kind: str) -> None:
    rows = launched(sync_until=460_000)
    rows["steps"] = [step(3, 0, 470_000)]
    rows["kernels"] = [span("gemm", 10_000 + latency, 40_000, correlation=1)]
    assert (kind, 10_000, latency) in path(make_tables(**rows))


def test_without_device_work_the_path_is_the_main_thread() -> None:
    tables = make_tables(steps=[step(0, 0, 100)], ops=[span("aten::mm", 10, 50)])
    assert path(tables) == [("gap", 0, 10), ("op", 10, 50), ("gap", 60, 40)]


def test_what_no_thread_and_no_device_did_cannot_be_told() -> None:
    with pytest.raises(NotEnoughData, match="activities"):
        make_tables(steps=[step(0, 0, 100)])["critical_path"]


def test_a_path_over_several_steps_is_cut_at_their_marks() -> None:
    tables = make_tables(steps=[step(0, 0, 100), step(1, 100, 100)], ops=[span("aten::mm", 10, 180)])
    assert path(tables) == [("gap", 0, 10), ("op", 10, 90), ("op", 100, 90), ("gap", 190, 10)]
    assert tables["critical_path"]["step"].to_list() == [0, 0, 1, 1]


def test_work_of_another_threads_gap_is_never_where_the_path_ends() -> None:
    tables = make_tables(
        steps=[step(0, 0, 100)],
        ops=[span("aten::mm", 10, 50), span("aten::pin", 0, 5, thread=1), span("aten::pin", 500, 5, thread=1)],
    )
    assert path(tables) == [("gap", 0, 10), ("op", 10, 50), ("gap", 60, 40)]
