"""The parts of a step add up, and an earlier part hides later ones (times in ns)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.analysis.breakdown import _per_step
from support.tables import make_tables, span, step


def test_compute_hides_communication_hides_copies() -> None:
    tables = make_tables(
        steps=[step(0, 0, 500), step(1, 500, 500)],
        kernels=[
            span("k", 0, 300, stream=7),
            span("nccl", 200, 300, stream=8, collective=True),
        ],
        copies=[span("c", 450, 250, stream=9, kind="DtoD")],
        sets=[span("m", 290, 20, stream=7)],
    )
    rows = {row["part"]: row for row in tables["breakdown"].iter_rows(named=True)}
    assert rows["compute"]["ns"] == 310
    assert rows["exposed_communication"]["ns"] == 190
    assert rows["exposed_copies"]["ns"] == 200
    assert sum(row["ns"] for row in rows.values()) == 1000
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12), st.integers(1, 50))
def test_rounded_parts_still_add_up(parts: list[int], steps: int) -> None:
    rounded = _per_step(parts, steps)
    assert sum(rounded) == sum(parts) // steps
    assert all(abs(got - part / steps) <= 1 for got, part in zip(rounded, parts, strict=True))
