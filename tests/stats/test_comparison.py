"""Verdicts on samples whose truth is known."""

import itertools
import math

import numpy as np
import pytest

from slipstream.stats import compare, median_spread


def test_separate_samples_are_told_apart_and_the_sign_is_that_of_b_against_a() -> None:
    a, b = [100.0, 101, 99, 100.5, 99.5], [90.0, 91, 89, 90.5, 89.5]
    assert compare(a, b).verdict == "faster"
    assert compare(b, a).verdict == "slower"
    assert compare(a, b).difference == -10


def test_the_interval_is_that_of_the_rank_test_by_hand() -> None:
    """Four against four: U = 0 has probability 1/70 on each side, U <= 1 has 2/70 > 2.5 %. So the interval runs from
    the least to the greatest difference of a pair."""
    a, b = [1.0, 2, 3, 4], [11.0, 13, 15, 17]
    result = compare(a, b)
    pairs = [y - x for x, y in itertools.product(a, b)]
    assert (result.low, result.high) == (min(pairs), max(pairs))


def test_equal_and_nearly_equal_samples_show_no_difference() -> None:
    """A test that fails on samples without variance must not become a verdict."""
    same = [100.0] * 8
    for other in (same, [*same[:-1], np.nextafter(100.0, 101)], [np.nextafter(100.0, 101), *same[1:]]):
        result = compare(same, other)
        assert result.verdict == "no_difference_shown"
        assert result.low is not None
        assert result.high is not None
        assert result.low <= 0 <= result.high


def test_constant_samples_that_differ_do_differ() -> None:
    result = compare([100.0] * 5, [90.0] * 5)
    assert (result.verdict, result.low, result.high, result.smallest_detectable) == ("faster", -10, -10, 0)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1], [2], "A and B hold a single value"),
        ([1, 2, 3, 4], [9], "B holds a single value"),
        ([1, 2, 3], [7, 8, 9], "3 against 3"),
    ],
)
def test_too_few_values_cannot_tell_and_say_why(a: list[float], b: list[float], words: str) -> None:
    result = compare(a, b)
    assert result.verdict == "cannot_tell"
    assert words in (result.reason or "")
    assert (result.low, result.high, result.smallest_detectable) == (None, None, None)
    assert result.difference == np.median(b) - np.median(a)


def test_four_against_four_is_the_least_that_can_be_told() -> None:
    assert compare([1, 2, 3], [7, 8, 9, 10]).verdict == "cannot_tell"  # 2/35 > 5 %
    assert compare([1, 2, 3, 4], [7, 8, 9, 10]).verdict == "slower"  # 2/70 < 5 %


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_what_is_no_sample_raises_and_is_never_a_verdict(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="sample"):
        compare(bad, [1.0, 2.0])
    with pytest.raises(ValueError, match="sample"):
        median_spread(bad)


def test_a_shift_just_beyond_the_smallest_detectable_is_shown_and_one_just_below_is_not() -> None:
    base = np.array([100.0, 103, 98, 101, 99.5, 104, 97])
    noise = base - np.median(base)
    least = compare(base, np.median(base) + noise).smallest_detectable
    assert least is not None
    assert compare(base, base + 1.001 * least).verdict == "slower"
    assert compare(base, base - 1.001 * least).verdict == "faster"
    assert compare(base, base + 0.999 * least).verdict == "no_difference_shown"


@pytest.mark.parametrize(("count", "shift"), [(5, 0.0), (8, 0.0), (40, 0.0), (8, 6.0)])
def test_the_interval_holds_the_truth_as_often_as_it_says(count: int, shift: float) -> None:
    """Heavy tails on purpose: steps stall."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        a, b = 100 + rng.standard_t(2, count), 100 + shift + rng.standard_t(2, count)
        result = compare(a, b)
        assert result.low is not None
        assert result.high is not None
        held += result.low <= shift <= result.high
    assert held >= 0.92 * 400


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(100, 3, 12), rng.normal(97, 3, 12)
    one, thousand = compare(a, b), compare(a * 1000, b * 1000)
    assert one.verdict == thousand.verdict
    assert thousand.low == pytest.approx(one.low * 1000)  # type: ignore[operator]


def test_many_values_are_compared_in_bounded_memory() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(100, 1, 20_000), rng.normal(101, 1, 30_000)
    result = compare(a, b)
    assert result.verdict == "slower"
    assert result.low is not None
    assert result.high is not None
    assert 0.8 < result.low < 1 < result.high < 1.2


def test_the_spread_of_a_median() -> None:
    spread = median_spread([100.0, 102, 98, 101, 99])
    assert spread.median == 100
    assert spread.low is not None
    assert spread.high is not None
    assert 98 <= spread.low < 100 < spread.high <= 102
    assert median_spread([5.0]).low is None
    assert median_spread([5.0] * 6).low == median_spread([5.0] * 6).high == 5
    assert median_spread([1.0, 2, 3]) == median_spread([1.0, 2, 3])
