"""What holds for every metric: order of rows does not matter, scaling times scales durations, parts add up."""

import json
import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipstream.store import DECLARED, METRICS, Tables
from support.tables import make_tables, span, step

Rows = dict[str, list[dict[str, Any]]]
NAMES = tuple(metric.name for metric in METRICS)
COUNTS = {"overlap", "stream_idle", "exposed_collectives", "copy_bandwidth", "launch_delays", "phase_spans"}
"""Metrics whose values but times do not change when all times are scaled."""


@st.composite
def recordings(draw: st.DrawFn) -> Rows:
    """Steps; ops, modules and launches on two threads; work of every kind on two streams; memory."""
    steps = [step(number, 1_000 * number, draw(st.integers(500, 1_000))) for number in range(draw(st.integers(0, 3)))]
    rows: Rows = {
        name: [] for name in ("ops", "python", "annotations", "runtime", "kernels", "copies", "sets", "memory")
    }
    rows["steps"] = steps
    event = iter(range(10_000))
    spans = st.lists(
        st.tuples(st.integers(0, 4_000), st.integers(0, 900), st.integers(0, 1)),
        max_size=10,
        unique_by=lambda row: row[0],
    )
    shapes = {"input_dims": "[[4,8],[8,2]]", "input_types": '["float","float"]'}
    for place, (ts, dur, thread) in enumerate(draw(spans)):
        node = {"sequence": place // 2, "fwd_thread": place % 2}
        rows["ops"].append(
            span(("aten::mm", "b")[place % 2], ts, dur, thread=thread, event=next(event), **shapes, **node)
        )
    for place, (ts, dur, thread) in enumerate(draw(spans)):
        rows["python"].append(span(f"nn.Module: M_{place % 3}", ts, dur, thread=thread, event=next(event)))
    for place, (ts, dur, _) in enumerate(draw(spans)):
        name = ("Optimizer.step#A", "forward", "backward")[place % 3]
        rows["annotations"].append(span(name, ts, dur, event=next(event)))
    for place, (ts, dur, thread) in enumerate(draw(spans)):
        call = span("cudaLaunchKernel", ts, dur % 20, thread=thread, correlation=place + 1, event=next(event))
        rows["runtime"].append(call)
        table = ("kernels", "kernels", "copies", "sets")[place % 4]
        work: dict[str, Any] = {"correlation": place + 1, "stream": place % 2, "event": next(event)}
        if table == "kernels":
            work |= {"collective": place % 3 == 0, "grid": "[8, 1, 1]", "block": "[64, 1, 1]", "registers": 32}
        if table == "copies":
            work |= {"size_bytes": 100, "kind": "HtoD"}
        if place % 5:
            rows[table].append(span(("k", "l")[place % 2], ts + draw(st.integers(0, 500)), dur, **work))
    for place, (ts, dur, thread) in enumerate(draw(spans)):
        sign = 1 if place % 3 else -1
        change = {
            "ts_ns": ts,
            "size_bytes": sign * (dur // 100 + 1),
            "address": place % 2,
            "device_type": 1,
            "device": 0,
        }
        rows["memory"].append({**change, "thread": thread, "event": next(event)})
    return rows


def contents(tables: Tables, name: str) -> list[dict[str, Any]] | None:
    """Rows of a table in an order of their own; None: refused."""
    if not tables.has(name):
        return None
    rows = tables[name].with_columns(pl.col(pl.Categorical).cast(pl.String)).rows(named=True)
    rounded = [{key: round(one, 6) if isinstance(one, float) else one for key, one in row.items()} for row in rows]
    return sorted(rounded, key=lambda row: json.dumps(row, default=str))


@settings(max_examples=15, deadline=None)
@given(recordings(), st.integers(0, 1_000))
def test_order_of_rows_does_not_matter(rows: Rows, seed: int) -> None:
    shuffled = {name: random.Random(seed).sample(given, len(given)) for name, given in rows.items()}
    first, second = make_tables(**rows), make_tables(**shuffled)
    for name in NAMES:
        assert contents(first, name) == contents(second, name), name


@settings(max_examples=10, deadline=None)
@given(recordings(), st.sampled_from([2, 1_000]))
def test_scaling_all_times_scales_all_durations(rows: Rows, factor: int) -> None:
    def scaled(by: int) -> Tables:
        times = {
            name: [{key: value * by if key.endswith("_ns") else value for key, value in row.items()} for row in given]
            for name, given in rows.items()
        }
        return make_tables(**times)

    # Above the slack for rounding of nested spans, which is a time of its own.
    first, second = scaled(2_000), scaled(2_000 * factor)
    for name in COUNTS:
        if contents(first, name) is None:
            assert contents(second, name) is None
            continue
        for column in DECLARED[name].columns:
            if column.unit == "ns":
                values = [float(tables[name][column.name].cast(pl.Float64).sum()) for tables in (first, second)]
                assert values[1] == pytest.approx(values[0] * factor), (name, column.name)
            elif column.unit == "":
                one, other = (sorted(map(rounded, tables[name][column.name])) for tables in (first, second))
                assert one == other, (name, column.name)


def rounded(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


@settings(max_examples=20, deadline=None)
@given(recordings())
def test_parts_add_up(rows: Rows) -> None:
    tables = make_tables(**rows)
    start, end = (int(str(tables.row("window")[name])) for name in ("start_ns", "end_ns"))
    if tables.has("overlap"):
        assert tables["overlap"].filter(pl.col("step").is_null())["ns"].sum() == end - start
        idle = tables["stream_idle"]
        assert (idle["busy_ns"] + idle["idle_ns"] == end - start).all()
        assert (idle["busy_ns"] <= idle["sum_ns"]).all()
        exposed = tables["exposed_collectives"]
        assert (exposed["exposed_ns"] <= exposed["comm_ns"]).all()
    if tables.has("queue_depths"):
        assert (tables["queue_depths"]["depth"] >= 0).all()
        assert tables["queue_depths"].group_by("device", "stream").agg(pl.col("depth").last())["depth"].sum() == 0
    if tables.has("phase_spans"):
        spans = tables["phase_spans"]
        ends = spans["start_ns"] + spans["dur_ns"]
        assert (spans["start_ns"].to_numpy()[1:] >= ends.to_numpy()[:-1]).all()
        if tables["device_work"].height:
            assert tables["phase_stats"]["device_ns"].sum() == tables["device_work"]["dur_ns"].sum()
    inside = tables["device_work"].filter(pl.col("ts_ns").is_between(start, end, closed="left"))["dur_ns"].sum()
    if tables.has("module_stats") and tables["device_work"].height:
        modules = tables["module_stats"]
        assert modules["device_self_ns"].sum() + modules["backward_device_self_ns"].sum() == inside
        assert (modules["device_self_ns"] <= modules["device_total_ns"]).all()
        assert (modules["host_self_ns"] <= modules["host_total_ns"]).fill_null(True).all()
    if tables.has("kernel_groups"):
        assert tables["kernel_groups"]["sum_ns"].sum() == inside
    groups = tables["op_groups"]
    assert (groups["host_self_ns"] <= groups["host_total_ns"]).all()
    assert groups["count"].sum() == tables["op_stats"]["count"].sum()
    if tables.has("memory_peak"):
        sums = tables["memory_peak"].group_by("device").agg(pl.col("live_bytes").sum(), pl.col("peak_bytes").first())
        assert (sums["live_bytes"] == sums["peak_bytes"]).all()
