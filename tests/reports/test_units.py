import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.reports.units import article, bar, duration, percent, percents, plural


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"),
        (0, "0 ns"),
        (853, "853 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_400, "999 µs"),
        (999_600, "1.00 ms"),
        (9_996_000, "10.0 ms"),
        (176_400_000, "176 ms"),
        (1_211_000_000, "1.21 s"),
        (1_234_000_000_000, "1,234 s"),
        (-1_500, "-1.50 µs"),
    ],
)
def test_durations_have_three_digits_in_the_unit_that_fits(ns: int | None, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.0001, "< 0.1 %"),
        (0.0042, "0.4 %"),
        (0.042, "4.2 %"),
        (0.0995, "10 %"),
        (0.514, "51 %"),
        (0.9951, "99.5 %"),
        (0.9999, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_percent_in_a_sentence(share: float, text: str) -> None:
    assert percent(share) == text


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=12).filter(any))
def test_printed_percents_add_up_to_a_hundred(weights: list[int]) -> None:
    printed = percents([weight / sum(weights) for weight in weights])
    assert sum(round(float(text.split()[0]) * 10) for text in printed) == 1000


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=12).filter(any))
def test_printed_percents_are_less_than_a_tenth_off(weights: list[int]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    for share, text in zip(shares, percents(shares), strict=True):
        assert abs(float(text.split()[0]) - share * 100) < 0.1 + 1e-9


@pytest.mark.parametrize(
    ("figure", "word"),
    [("85.0 ms", "an"), ("8.10 s", "an"), ("11.2 ms", "an"), ("18 ns", "an"), ("110 ms", "a"), ("176 ms", "a")],
)
def test_article_is_the_spoken_one(figure: str, word: str) -> None:
    assert article(figure) == word


def test_plural() -> None:
    assert (plural(1, "step"), plural(0, "step"), plural(1200, "step")) == ("1 step", "0 steps", "1,200 steps")


@given(st.floats(0, 1), st.integers(1, 80))
def test_bar_never_leaves_its_width_and_shows_whatever_is_there(share: float, width: int) -> None:
    assert len(bar(share, width)) <= width
    assert bool(bar(share, width)) == (share > 0)


def test_bar_grows_by_eighths() -> None:
    assert (bar(0.5, 4), bar(0.5, 1), bar(1, 3)) == ("██", "▌", "███")
