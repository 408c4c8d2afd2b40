"""Device work and the host calls that launched it."""

import polars as pl

from slipstream.analysis.device_work import LAUNCH, analysed_device
from slipstream.store import Tables
from support.tables import make_tables, span, step


def launches(tables: Tables) -> dict[str, int | None]:
    """Launch time by name of the device row."""
    rows = tables["device_work"].select(pl.col("name").cast(pl.String), "launch_ts_ns")
    return dict(rows.iter_rows())


def test_kinds_and_links_by_correlation() -> None:
    tables = make_tables(
        runtime=[
            span("cudaLaunchKernel", 10, 3, correlation=1, thread=2),
            span("cudaMemcpyAsync", 20, 3, correlation=2),
            span("cudaMemsetAsync", 30, 4, correlation=3),
        ],
        kernels=[span("gemm", 40, 5, correlation=1), span("ncclAllReduce", 60, 5, correlation=9, collective=True)],
        copies=[span("copy", 50, 5, correlation=2)],
        sets=[span("set", 55, 5, correlation=3)],
    )
    work = tables["device_work"]
    assert work["kind"].to_list() == ["kernel", "copy", "set", "collective"]
    assert launches(tables) == {"gemm": 10, "copy": 20, "set": 30, "ncclAllReduce": None}
    assert work["launch_thread"].to_list() == [2, 0, 0, None]
    assert work["launch_dur_ns"].to_list() == [3, 3, 4, None]


def test_correlation_0_never_links() -> None:
    tables = make_tables(
        runtime=[span("cudaLaunchKernel", 10, 3, correlation=0)], kernels=[span("k", 40, 5, correlation=0)]
    )
    assert launches(tables) == {"k": None}


def test_of_two_launches_with_one_correlation_the_last_before_the_kernel() -> None:
    tables = make_tables(
        runtime=[span("cudaLaunchKernel", ts, 3, correlation=1) for ts in (10, 100, 300)],
        kernels=[span("a", 90, 5, correlation=1), span("b", 150, 5, correlation=1), span("c", 100, 5, correlation=1)],
    )
    assert launches(tables) == {"a": 10, "b": 100, "c": 100}


def test_a_launch_after_its_kernel_by_the_clocks_is_its_launch_still() -> None:
    tables = make_tables(
        runtime=[span("cudaLaunchKernel", 100, 3, correlation=1)], kernels=[span("k", 98, 5, correlation=1)]
    )
    assert launches(tables) == {"k": 100}


def test_a_replayed_graph_owns_all_its_kernels() -> None:
    tables = make_tables(
        ops=[span("replay", 0, 50)],
        runtime=[span("cudaGraphLaunch", 10, 30, correlation=7)],
        kernels=[span(f"k{i}", 100 + 10 * i, 9, correlation=7) for i in range(1000)],
    )
    assert tables["device_work"]["launch_event"].n_unique() == 1
    assert tables["op_tree"]["device_self_ns"].to_list() == [9000]


def test_arrows_link_what_correlation_does_not() -> None:
    tables = make_tables(
        runtime=[span("launch", 10, 3, thread=1), span("launch", 20, 3, thread=1)],
        kernels=[span("k", 40, 5, event=70), span("other", 45, 5, event=71)],
        events=[span("k", 40, 5, event=70, thread=9), span("other", 45, 5, event=71, thread=9)],
        flows=[
            {"flow_id": 4, "start": True, "thread": 1, "ts_ns": 20},
            {"flow_id": 4, "thread": 9, "ts_ns": 40},
            {"flow_id": 5, "thread": 9, "ts_ns": 45},
            {"flow_id": 5, "start": True, "thread": 1, "ts_ns": 20, "kind": "fwdbwd"},
        ],
    )
    assert launches(tables) == {"k": 20, "other": None}


def test_the_op_is_the_innermost_around_the_launch_else_the_one_with_the_id() -> None:
    tables = make_tables(
        ops=[
            span("outer", 0, 100, external_id=1),
            span("inner", 10, 20, external_id=2),
            span("elsewhere", 0, 100, thread=5, external_id=3),
        ],
        runtime=[
            span("cudaLaunchKernel", 15, 3, correlation=1),
            span("cudaLaunchKernel", 50, 3, correlation=2),
            span("cudaLaunchKernel", 200, 3, correlation=3, external_id=2),
            span("cudaLaunchKernel", 210, 3, correlation=4),
        ],
        kernels=[span("k", 300 + i, 1, correlation=i) for i in range(1, 5)] + [span("k", 400, 1, external_id=3)],
    )
    names = dict(tables["ops"].select("event", "name").iter_rows())
    assert [names.get(event) for event in tables["device_work"]["op_event"]] == [
        "inner",
        "outer",
        "inner",
        None,
        "elsewhere",
    ]


def test_a_kernel_that_runs_in_a_later_step_counts_in_both_views() -> None:
    tables = make_tables(
        steps=[step(3, 0, 100), step(4, 100, 100)],
        runtime=[span("cudaLaunchKernel", 90, 3, correlation=1), span("cudaLaunchKernel", 250, 3, correlation=2)],
        kernels=[span("k", 120, 5, correlation=1), span("late", 260, 5, correlation=2), span("lost", 10, 5)],
    )
    work = tables["device_work"]
    assert work["name"].to_list() == ["lost", "k", "late"]
    assert work["step_launched"].to_list() == [None, 3, None]
    assert work["step_ran"].to_list() == [3, 4, None]


def test_the_analysed_device_is_the_one_with_most_work() -> None:
    tables = make_tables(kernels=[span("a", 0, 10, device=0), span("b", 0, 6, device=1), span("c", 9, 6, device=1)])
    assert analysed_device(tables["device_work"]) == 1
    assert analysed_device(make_tables(kernels=[span("a", 0, 9, device=None)])["device_work"]) is None


def test_names_of_launches() -> None:
    names = [
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cuLaunchKernelEx",
        "hipExtModuleLaunchKernel",
        "hipModuleLaunchKernel",
        "hipGraphLaunch",
        "cudaGraphLaunch",
        "cudaLaunchCooperativeKernel",
        "urEnqueueKernelLaunch",
        "zeCommandListAppendLaunchKernel",
    ]
    others = ["cudaMemcpyAsync", "cudaLaunchHostFunc", "cudaDeviceSynchronize", "hipGetDevice"]
    found = pl.Series(names + others).str.contains(LAUNCH)
    assert found.to_list() == [True] * len(names) + [False] * len(others)
