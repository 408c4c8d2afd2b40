"""Parts of the typical step add up, whatever the steps are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.analysis.diff.typical import adding_up, median_ns


@given(st.lists(st.lists(st.integers(0, 10**12), min_size=3, max_size=3), min_size=1, max_size=8))
def test_parts_add_up_and_none_is_negative(rows: list[list[int]]) -> None:
    times = np.array(rows, np.int64)
    whole = median_ns(times.sum(axis=0))
    found = adding_up(times, whole)
    assert found.sum() == whole
    assert (found >= 0).all()


def test_one_step_is_told_as_it_is() -> None:
    assert adding_up(np.array([[7], [0], [5]]), 12).tolist() == [7, 0, 5]


def test_what_is_missing_goes_to_the_parts_that_vary() -> None:
    """Medians 10, 1 and 1 add up to 12, the median step takes 16: the first part is the same in every step."""
    times = np.array([[10, 10, 10], [1, 1, 6], [6, 1, 1]])
    assert adding_up(times, 16).tolist() == [10, 3, 3]


def test_too_much_is_taken_from_parts_that_have_it() -> None:
    times = np.array([[100, 100, 100], [0, 9, 9], [9, 0, 9]])
    assert adding_up(times, 109).tolist() in ([100, 5, 4], [100, 4, 5])


def test_a_part_that_is_nothing_but_a_rare_stall() -> None:
    assert adding_up(np.array([[0, 0, 30], [0, 40, 0]]), 30).sum() == 30
    assert adding_up(np.zeros((2, 3), np.int64), 0).tolist() == [0, 0]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_median_is_a_whole_number(count: int) -> None:
    assert isinstance(median_ns(np.arange(count)), int)
