"""Copies and their bandwidth."""

import pytest

from slipstream.model import NotEnoughData
from support.tables import make_tables, span, step


def test_large_copies_weigh_more_and_one_without_duration_has_no_bandwidth() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        copies=[
            span("m", 0, 100, kind="HtoD", pageable=True, size_bytes=1_000),
            span("m", 200, 100, kind="HtoD", pageable=True, size_bytes=200),
            span("m", 400, 0, kind="HtoD", pageable=True, size_bytes=64),
            span("m", 500, 10, kind="HtoD", pageable=False, size_bytes=250),
            span("m", 600, 10, kind="DtoD"),
            span("m", 2_000, 10, kind="DtoD", size_bytes=1),
        ],
    )
    rows = {(row["kind"], row["pageable"]): row for row in tables["copy_bandwidth"].iter_rows(named=True)}
    pageable = rows["HtoD", True]
    assert (pageable["count"], pageable["unmeasured"], pageable["size_bytes"], pageable["sum_ns"]) == (3, 1, 1_264, 200)
    assert (pageable["bw_gbps"], pageable["median_bw_gbps"], pageable["max_bw_gbps"]) == (6.0, 6.0, 10.0)
    assert rows["HtoD", False]["bw_gbps"] == 25.0
    device = rows["DtoD", None]
    assert (device["count"], device["unmeasured"], device["size_bytes"], device["bw_gbps"]) == (1, 1, None, None)


def test_no_copies_is_an_answer_and_no_device_is_none() -> None:
    assert make_tables(kernels=[span("k", 0, 10)])["copy_bandwidth"].height == 0
    with pytest.raises(NotEnoughData):
        make_tables(ops=[span("aten::mm", 0, 10)])["copy_bandwidth"]
