"""A line through points of which some lie far off."""

import numpy as np
import pytest

from slipstream.stats import robust_line


def test_a_fifth_of_the_points_may_be_anywhere() -> None:
    x = np.arange(100.0)
    y = 5.0 + 0.25 * x
    y[::5] += 1e6
    line = robust_line(x, y)
    assert line.slope == pytest.approx(0.25)
    assert line.intercept == pytest.approx(5.0)


def test_the_interval_holds_the_slope_about_as_often_as_it_says() -> None:
    chance = np.random.default_rng(1)
    x = np.arange(40.0)
    lines = [robust_line(x, 2.0 * x + chance.normal(0, 5, 40)) for _ in range(200)]
    held = sum(line.slope_low <= 2.0 <= line.slope_high for line in lines)
    assert 180 <= held <= 200
    assert all(line.slope_low < line.slope_high for line in lines)


def test_many_points_are_thinned_over_their_whole_length() -> None:
    x = np.arange(50_000.0)[::-1]
    line = robust_line(x, 3.0 * x - 1.0)
    assert (line.slope, line.intercept) == (pytest.approx(3.0), pytest.approx(-1.0))


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [1, 2]), ([], [])])
def test_no_line(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match=r"three points|at least one"):
        robust_line(x, y)
