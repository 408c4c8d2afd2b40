"""Busy and idle time of streams and devices."""

from typing import Any

from slipstream.store import Tables
from support.tables import make_tables, span, step


def rows(tables: Tables) -> dict[tuple[Any, Any], dict[str, Any]]:
    return {(row["device"], row["stream"]): row for row in tables["stream_idle"].iter_rows(named=True)}


def test_stream_0_and_short_kernels_count_and_overlap_counts_once() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        kernels=[
            span("k", 100, 1, stream=0),
            span("k", 102, 1, stream=0),
            span("k", 102, 398, stream=1),
            span("k", 300, 100, stream=1),  # started early: programmatic dependent launch
        ],
    )
    found = rows(tables)
    assert set(found) == {(0, None), (0, 0), (0, 1)}
    assert found[0, 0]["busy_ns"] == 2
    assert (found[0, 1]["busy_ns"], found[0, 1]["sum_ns"], found[0, 1]["idle_ns"]) == (398, 498, 602)
    whole = found[0, None]
    assert (whole["scope"], whole["count"], whole["busy_ns"], whole["idle_ns"]) == ("device", 4, 399, 601)
    assert (whole["before_first_ns"], whole["after_last_ns"], whole["gaps"]) == (100, 500, 3)
    assert whole["longest_idle_ns"] == 500
    for row in found.values():
        assert row["busy_ns"] + row["idle_ns"] == 1_000


def test_work_from_before_the_window_counts_only_inside_it() -> None:
    tables = make_tables(
        steps=[step(1, 1_000, 100)],
        kernels=[span("left over", 900, 120), span("long gone", 10, 5), span("k", 1_050, 10)],
    )
    row = rows(tables)[0, 7]
    assert (row["count"], row["sum_ns"], row["busy_ns"], row["before_first_ns"]) == (2, 30, 30, 0)


def test_a_stream_without_work_in_the_window_is_idle_all_of_it() -> None:
    tables = make_tables(steps=[step(1, 1_000, 100)], kernels=[span("k", 1_010, 10), span("warm-up", 10, 5, stream=9)])
    row = rows(tables)[0, 9]
    assert (row["busy_ns"], row["idle_ns"], row["before_first_ns"], row["after_last_ns"]) == (0, 100, 100, 0)
    assert (row["gaps"], row["longest_idle_ns"]) == (1, 100)
