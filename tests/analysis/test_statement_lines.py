"""Two orders of ops laid side by side, against the longest common subsequence by the textbook."""

from hypothesis import given
from hypothesis import strategies as st

from slipstream.analysis.statement_lines import MOST_DIFFERENCES, matched, side_by_side

NAMES = st.lists(st.sampled_from("abc"), max_size=12).map(tuple)


def longest_common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    row = [0] * (len(second) + 1)
    for name in first:
        following = [0]
        for place, other in enumerate(second):
            following.append(row[place] + 1 if name == other else max(row[place + 1], following[-1]))
        row = following
    return row[-1]


@given(NAMES, NAMES)
def test_the_alignment_is_a_longest_one(names: tuple[str, ...], seen: tuple[str, ...]) -> None:
    pairs = [(here, there) for here, there in enumerate(side_by_side(names, seen)) if there >= 0]
    assert all(names[here] == seen[there] for here, there in pairs)
    assert [there for _, there in pairs] == sorted({there for _, there in pairs})
    assert len(pairs) == longest_common(names, seen)


def test_steps_with_nothing_in_common_are_given_up() -> None:
    common, extra = tuple("abc"), ("x",) * MOST_DIFFERENCES
    assert side_by_side(common, (*common, *extra)) == [0, 1, 2]
    assert side_by_side(common, (*common, *extra, "x")) == [-1, -1, -1]


def test_short_or_uniform_stretches_tell_nothing() -> None:
    assert matched(tuple("aaaa"), tuple("aaa")) == [-1] * 4
    assert matched(tuple("ab"), tuple("xab")) == [-1] * 2
    assert matched(tuple("abaz"), tuple("xabay")) == [1, 2, 3, -1]
