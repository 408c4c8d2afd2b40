"""Which host calls wait for the device, and how long the device stood still behind each (times in ns)."""

from typing import Any

import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step

STEP = [step(3, 0, 10_000)]


def calls(**tables: Any) -> list[dict[str, Any]]:
    return make_tables(steps=STEP, **tables)["blocking_calls"].rows(named=True)


def test_copy_and_synchronize_under_one_op_are_one_read_back() -> None:
    rows = calls(
        ops=[span("aten::item", 100, 400)],
        runtime=[
            span("cudaLaunchKernel", 10, 5, correlation=1),
            span("cudaMemcpyAsync", 150, 20, correlation=2),
            span("cudaStreamSynchronize", 180, 300, correlation=3),
            span("cudaLaunchKernel", 900, 5, correlation=4),
        ],
        kernels=[span("k", 20, 400, correlation=1), span("k", 950, 9_000, correlation=4)],
        copies=[span("Memcpy DtoH", 430, 10, correlation=2, kind="DtoH", pageable=False, size_bytes=4)],
    )
    assert [(row["name"], row["kind"], row["explicit"]) for row in rows] == [
        ("cudaStreamSynchronize", "read_back", False)
    ]
    (row,) = rows
    assert row["size_bytes"] == 4
    assert row["step"] == 3
    # The copy ends at 440, the call returns at 480, the next kernel runs at 950.
    assert row["gap_ns"] == 950 - 440


def test_pageable_copies_wait_by_themselves_pinned_ones_do_not() -> None:
    rows = calls(
        runtime=[
            span("cudaMemcpyAsync", 100, 50, correlation=1),
            span("cudaMemcpyAsync", 200, 50, correlation=2),
            span("hipMemcpy", 300, 50, correlation=3),
        ],
        copies=[
            span("c", 110, 30, correlation=1, kind="HtoD", pageable=True, size_bytes=64),
            span("c", 210, 30, correlation=2, kind="HtoD", pageable=False, size_bytes=64),
            span("c", 310, 30, correlation=3, kind="DtoH", pageable=False, size_bytes=64),
        ],
    )
    assert [(row["ts_ns"], row["kind"]) for row in rows] == [(100, "pageable_upload"), (300, "read_back")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaDeviceSynchronize", "synchronize"),
        ("hipStreamSynchronize", "synchronize"),
        ("cuCtxSynchronize", "synchronize"),
        ("cudaEventSynchronize", "event"),
    ],
)
def test_synchronize_called_by_hand_is_explicit(name: str, kind: str) -> None:
    (row,) = calls(runtime=[span(name, 100, 50)], kernels=[span("k", 0, 120, correlation=None)])
    assert (row["kind"], row["explicit"]) == (kind, True)


def test_gap_ends_at_the_next_blocking_call() -> None:
    rows = calls(
        runtime=[
            span("cudaLaunchKernel", 10, 5, correlation=1),
            span("cudaDeviceSynchronize", 50, 60),
            span("cudaDeviceSynchronize", 300, 10),
            span("cudaLaunchKernel", 800, 5, correlation=2),
        ],
        kernels=[span("k", 20, 80, correlation=1), span("k", 900, 9_100, correlation=2)],
    )
    assert [row["gap_ns"] for row in rows] == [300 - 100, 900 - 300]


def test_no_gap_where_work_was_queued() -> None:
    (row,) = calls(
        runtime=[
            span("cudaLaunchKernel", 10, 5, correlation=1),
            span("cudaLaunchKernel", 20, 5, correlation=2),
            span("cudaEventSynchronize", 50, 60),
        ],
        kernels=[span("k", 20, 80, correlation=1), span("k", 100, 9_900, correlation=2)],
    )
    assert row["gap_ns"] == 0


def test_without_runtime_rows_it_cannot_tell() -> None:
    with pytest.raises(NotEnoughData):
        calls(kernels=[span("k", 0, 10)])
