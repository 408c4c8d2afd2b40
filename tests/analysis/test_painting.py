"""Labelled spans against a brute-force picture: one cell per nanosecond."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.analysis.painting import Painted, complement, covered, inside, layer, merge, nothing, outside, paint

LENGTH = 120
SPANS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 20)), max_size=8)


def painted(spans: list[tuple[int, int]], base: int) -> Painted:
    start = np.array([begin for begin, _ in spans], np.int64)
    return paint(start, start + np.array([length for _, length in spans], np.int64), base + np.arange(len(spans)))


def cells(spans: Painted) -> list[int]:
    """Label of each nanosecond, -1 where none; fails where two spans overlap."""
    picture = [-1] * LENGTH
    for start, end, label in zip(spans.start, spans.end, spans.label, strict=True):
        for place in range(start, end):
            assert picture[place] == -1
            picture[place] = int(label)
    return picture


@given(SPANS)
def test_paint_covers_the_union_and_the_earlier_span_keeps_its_place(spans: list[tuple[int, int]]) -> None:
    picture = cells(painted(spans, 0))
    for place in range(LENGTH):
        over = [(begin, -length) for begin, length in spans if begin <= place < begin + length]
        assert (picture[place] == -1) == (not over)
        if over:
            begin, _ = spans[picture[place]]
            assert begin == min(start for start, _ in over)


@given(SPANS, SPANS)
def test_outside_inside_and_layer_agree_with_the_picture(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    a, b = painted(first, 0), painted(second, 50)
    left, right = cells(a), cells(b)
    assert cells(outside(a, b)) == [x if y == -1 else -1 for x, y in zip(left, right, strict=True)]
    pieces, window = inside(a, b)
    assert cells(pieces) == [x if y != -1 else -1 for x, y in zip(left, right, strict=True)]
    assert all(b.start[w] <= s and e <= b.end[w] for s, e, w in zip(pieces.start, pieces.end, window, strict=True))
    assert cells(layer([a, b])) == [x if x != -1 else y for x, y in zip(left, right, strict=True)]
    assert cells(merge([a, outside(b, a)])) == cells(layer([a, b]))
    rest = complement(a, 10, 90, 7)
    assert cells(rest) == [7 if x == -1 and 10 <= place < 90 else -1 for place, x in enumerate(left)]


@given(SPANS, st.integers(0, LENGTH), st.integers(0, LENGTH))
def test_covered_counts_the_cells(spans: list[tuple[int, int]], start: int, end: int) -> None:
    picture = cells(painted(spans, 0))
    first, last = min(start, end), max(start, end)
    got = covered(painted(spans, 0), np.array([first]), np.array([last]))
    assert got[0] == sum(value != -1 for value in picture[first:last])


def test_nothing_is_nothing() -> None:
    assert nothing().total_ns == 0
    assert len(layer([])) == 0


@pytest.mark.parametrize(("label", "expected"), [(3, 3), (9, 9)])
def test_paint_keeps_events(label: int, expected: int) -> None:
    spans = paint(np.array([5]), np.array([9]), label, np.array([42]))
    assert spans.label.tolist() == [expected]
    assert spans.event.tolist() == [42]
