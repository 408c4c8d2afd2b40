"""Interval algebra against sets of whole nanoseconds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slipstream.analysis.intervals import Intervals, clip, covered, difference, intersection, length, union

RAW = st.lists(st.tuples(st.integers(-40, 60), st.integers(-3, 25)), max_size=12)


def made(raw: list[tuple[int, int]]) -> Intervals:
    return union([start for start, _ in raw], [start + dur for start, dur in raw])


def moments(raw: list[tuple[int, int]]) -> set[int]:
    return {moment for start, dur in raw for moment in range(start, start + dur)}


def held(a: Intervals) -> set[int]:
    """The moments of a set, after checking that it is in its one normal form."""
    assert (a.end > a.start).all()
    assert (a.start[1:] > a.end[:-1]).all()
    return {moment for start, end in zip(a.start, a.end, strict=True) for moment in range(start, end)}


@given(RAW)
def test_union_holds_every_moment_once(raw: list[tuple[int, int]]) -> None:
    assert held(made(raw)) == moments(raw)
    assert length(made(raw)) == len(moments(raw))


@given(RAW, st.randoms(use_true_random=False))
def test_order_does_not_matter(raw: list[tuple[int, int]], random: object) -> None:
    shuffled = list(raw)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    a, b = made(raw), made(shuffled)
    assert a.start.tolist() == b.start.tolist()
    assert a.end.tolist() == b.end.tolist()


@given(RAW, RAW)
def test_intersection_and_difference(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    a, b = made(first), made(second)
    assert held(intersection(a, b)) == moments(first) & moments(second)
    assert held(difference(a, b)) == moments(first) - moments(second)
    assert length(intersection(a, b)) + length(difference(a, b)) == length(a)


@given(RAW, st.integers(-50, 90), st.integers(-50, 90))
def test_clip(raw: list[tuple[int, int]], start: int, end: int) -> None:
    assert held(clip(made(raw), start, end)) == {moment for moment in moments(raw) if start <= moment < end}


@given(RAW, st.lists(st.tuples(st.integers(-50, 90), st.integers(-50, 90)), max_size=5))
def test_covered(raw: list[tuple[int, int]], stretches: list[tuple[int, int]]) -> None:
    got = covered(made(raw), [start for start, _ in stretches], [end for _, end in stretches])
    assert got.tolist() == [len(moments(raw) & set(range(start, end))) for start, end in stretches]


def test_sub_microsecond_intervals_stay_exact() -> None:
    start = np.arange(1000) * 300
    assert length(union(start, start + 200)) == 200_000
