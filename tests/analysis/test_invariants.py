"""What holds for every recording: order of rows does not matter, scaling times scales durations, parts add up."""

import random
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from slipstream.store import Tables
from support.tables import make_tables, span, step

Rows = dict[str, list[dict[str, Any]]]
TIMES = ("window", "totals", "step_times", "op_tree", "op_stats", "kernel_stats", "device_work")


@st.composite
def recordings(draw: st.DrawFn) -> Rows:
    """Steps, ops on two threads, launches inside and outside them, kernels of which some are linked."""
    steps = [step(number, 1_000 * number, draw(st.integers(500, 1_000))) for number in range(draw(st.integers(0, 3)))]
    rows: Rows = {"steps": steps, "ops": [], "python": [], "runtime": [], "kernels": [], "copies": [], "sets": []}
    event = iter(range(10_000))
    spans = st.tuples(st.integers(0, 4_000), st.integers(0, 900), st.integers(0, 1))
    for table, names in (("ops", "abc"), ("python", ["t.py(1): f", "t.py(9): g", "torch/x.py(2): h"])):
        for place, (ts, dur, thread) in enumerate(draw(st.lists(spans, max_size=12, unique_by=lambda row: row[0]))):
            rows[table].append(span(names[place % 3], ts, dur, thread=thread, event=next(event)))
    for place, (ts, dur, thread) in enumerate(draw(st.lists(spans, max_size=12, unique_by=lambda row: row[0]))):
        rows["runtime"].append(
            span("cudaLaunchKernel", ts, dur % 20, thread=thread, correlation=place + 1, event=next(event))
        )
        table = ("kernels", "kernels", "copies", "sets")[place % 4]
        wait = draw(st.integers(0, 500))
        if place % 5:
            rows[table].append(span(table, ts + wait, dur, correlation=place + 1, event=next(event)))
    return rows


def contents(tables: Tables, name: str) -> list[dict[str, Any]]:
    """Rows of a table in an order of their own."""
    if not tables.has(name):
        return []
    rows = tables[name].with_columns(pl.col(pl.Categorical).cast(pl.String)).rows(named=True)
    return sorted(rows, key=repr)


@settings(max_examples=40, deadline=None)
@given(recordings(), st.integers(0, 1_000))
def test_order_of_rows_does_not_matter(rows: Rows, seed: int) -> None:
    shuffled = {name: random.Random(seed).sample(given, len(given)) for name, given in rows.items()}
    first, second = make_tables(**rows), make_tables(**shuffled)
    for name in (*TIMES, "op_places", "frames"):
        assert contents(first, name) == contents(second, name), name


@settings(max_examples=40, deadline=None)
@given(recordings(), st.sampled_from([2, 1_000]))
def test_scaling_all_times_scales_all_durations(rows: Rows, factor: int) -> None:
    # Above the slack for rounding, which is a time of its own.
    def scaled(by: int) -> Tables:
        return make_tables(
            **{
                name: [
                    {key: value * by if key.endswith("_ns") else value for key, value in row.items()} for row in given
                ]
                for name, given in rows.items()
            }
        )

    first, second = scaled(1_000), scaled(1_000 * factor)
    for name in ("window", "totals", "step_times"):
        for one, other in zip(contents(first, name), contents(second, name), strict=True):
            for key, value in one.items():
                expected = value * factor if key.endswith("_ns") and value is not None else value
                assert other[key] == expected, (name, key)


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_parts_add_up(rows: Rows) -> None:
    tables = make_tables(**rows)
    window = tables.row("window")
    if window["busy_ns"] is not None:
        assert window["busy_ns"] >= 0
        assert window["idle_ns"] >= 0
        assert window["busy_ns"] + window["idle_ns"] == window["end_ns"] - window["start_ns"]
    totals = tables.row("totals")
    if totals["gpu_events"]:
        assert totals["gpu_busy_ns"] <= totals["gpu_sum_ns"]
        assert totals["exposed_comm_ns"] <= totals["comm_ns"]
        assert totals["exposed_memcpy_ns"] <= totals["memcpy_ns"] <= totals["gpu_busy_ns"]
    tree = tables["op_tree"].join(tables["ops"].select("event", "dur_ns"), on="event")
    assert (tree["self_ns"] <= tree["dur_ns"]).all()
    assert (tree["self_ns"] >= 0).all()
    assert (tree["device_self_ns"] <= tree["device_total_ns"]).all()
    linked = tables["device_work"].filter(pl.col("op_event").is_not_null())["dur_ns"].sum()
    assert tree["device_self_ns"].sum() == linked
    assert tree.filter(pl.col("parent").is_null())["device_total_ns"].sum() == linked
    assert tables["device_work"].height == sum(len(rows[name]) for name in ("kernels", "copies", "sets"))
    stats = tables["op_stats"]
    assert (stats["host_self_ns"] <= stats["host_total_ns"]).all()
