"""Queues of streams and delays of launches."""

from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step


def launch(number: int, ts_ns: int, dur_ns: int = 5, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return span(name, ts_ns, dur_ns, correlation=number)


def test_depth_rises_with_the_call_and_falls_when_the_work_starts() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        runtime=[launch(1, 10), launch(2, 20), launch(3, 30)],
        kernels=[span("k", 15, 45, correlation=1), span("k", 60, 10, correlation=2), span("k", 70, 10, correlation=3)],
    )
    assert tables["queue_depths"].select("ts_ns", "depth").rows() == [
        (10, 1),
        (15, 0),
        (20, 1),
        (30, 2),
        (60, 1),
        (70, 0),
    ]
    row = tables["queue_stats"].row(0, named=True)
    assert (row["launches"], row["unlinked"], row["max_depth"], row["blocked_ns"]) == (3, 0, 2, 0)
    assert row["mean_depth"] == pytest.approx((5 + 10 + 60 + 10) / 100)
    assert row["empty_share"] == pytest.approx((10 + 5 + 30) / 100)


def test_a_replayed_graph_is_one_entry() -> None:
    tables = make_tables(
        steps=[step(1, 0, 10_000)],
        runtime=[launch(1, 10, name="cudaGraphLaunch")],
        kernels=[span("k", 100 + place, 1, correlation=1) for place in range(2_000)],
    )
    assert tables["queue_stats"]["max_depth"].to_list() == [1]
    delays = tables["launch_delays"].row(0, named=True)
    assert (delays["count"], delays["max_ns"]) == (1, 90)


def test_the_host_stands_before_a_full_queue() -> None:
    # 1,100 launches of 1 ns each while a long kernel runs; from the 1,024th on every call lasts until one starts.
    waiting = 1_100
    calls = [launch(0, 0)]
    kernels = [span("long", 10, 100_000, correlation=0)]
    for number in range(1, waiting):
        free = number <= 1_023
        begin = 100 + number if free else 100_010 + 10 * (number - 1_025)
        calls.append(launch(number, max(begin, 2_000) if not free else begin, 1 if free else 10))
        kernels.append(span("k", 100_010 + 10 * (number - 1), 10, correlation=number))
    calls[1_024] = launch(1_024, 2_000, 98_010)
    tables = make_tables(steps=[step(1, 0, 120_000)], runtime=calls, kernels=kernels)
    row = tables["queue_stats"].row(0, named=True)
    assert row["max_depth"] == 1_024
    assert row["blocked_ns"] == pytest.approx(98_010, rel=0.02)
    rocm = make_tables(steps=[step(1, 0, 120_000)], runtime=calls, kernels=kernels, device_kind="rocm")
    assert rocm["queue_stats"]["blocked_ns"].to_list() == [None]


def test_latency_is_told_apart_from_waiting_and_clocks_that_disagree_give_no_negative_delay() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        runtime=[launch(1, 100, 20), launch(2, 130), launch(3, 500)],
        kernels=[
            span("k", 110, 200, correlation=1),
            span("k", 310, 3, correlation=2),
            span("k", 490, 50, correlation=3),
            span("unlinked", 600, 10),
        ],
    )
    row = tables["launch_delays"].row(0, named=True)
    assert (row["count"], row["unlinked"], row["queued"], row["short"]) == (3, 1, 1, 1)
    assert (row["max_ns"], row["median_ns"], row["mean_ns"]) == (180, 10.0, pytest.approx(190 / 3))
    assert row["latency_median_ns"] == 5.0
    assert tables["queue_stats"]["unlinked"].to_list() == [1]


def test_streams_without_any_known_launch_are_listed_as_such() -> None:
    tables = make_tables(runtime=[launch(1, 10)], kernels=[span("k", 20, 5, correlation=1), span("k", 30, 5, stream=0)])
    rows = tables["launch_delays"].sort("stream").select("stream", "count", "unlinked").rows()
    assert rows == [(0, 0, 1), (7, 1, 0)]


def test_no_launches_known() -> None:
    tables = make_tables(kernels=[span("k", 0, 10)])
    for name in ("queue_depths", "queue_stats", "launch_delays"):
        with pytest.raises(NotEnoughData, match="known launch"):
            tables[name]


def test_order_of_rows_does_not_matter() -> None:
    calls = [launch(number, 10 * number) for number in range(1, 9)]
    kernels = [span("k", 30 * number, 20, correlation=number) for number in range(1, 9)]
    first = make_tables(runtime=calls, kernels=kernels)
    second = make_tables(runtime=calls[::-1], kernels=kernels[::-1])
    for name in ("queue_depths", "queue_stats", "launch_delays"):
        plain = [tables[name].with_columns(pl.col(pl.Categorical).cast(pl.String)).rows() for tables in (first, second)]
        assert plain[0] == plain[1]
