"""Rows of a job of any length stay few."""

import itertools

from slipstream.capture.rows import NULL, Rows


def test_all_rows_are_held_up_to_the_capacity() -> None:
    rows = Rows(("a", "b"), capacity=100)
    for number in range(99):
        rows.append((number, None))
    assert rows.cells()[:, 0].tolist() == list(range(99))
    assert set(rows.cells()[:, 1].tolist()) == {NULL}
    assert rows.every == 1


def test_more_are_thinned_evenly() -> None:
    rows = Rows(("a",), capacity=100)
    for number in range(10_000):
        rows.append((number,))
    held = rows.cells()[:, 0].tolist()
    assert len(rows) == len(held) <= 100
    assert len(held) >= 25
    distances = {later - earlier for earlier, later in itertools.pairwise(held)}
    assert distances == {rows.every}


def test_rows_that_matter_are_always_held() -> None:
    rows = Rows(("a",), capacity=100)
    for number in range(10_000):
        rows.append((number,), keep=5_000 <= number < 5_150)
    held = rows.cells()[:, 0].tolist()
    assert set(range(5_000, 5_150)) <= set(held)
    assert len(held) < 600


def test_the_last_row_can_be_taken_back() -> None:
    rows = Rows(("a",))
    rows.append((1,))
    rows.append((2,))
    rows.pop()
    rows.append((3,))
    assert rows.cells()[:, 0].tolist() == [1, 3]
