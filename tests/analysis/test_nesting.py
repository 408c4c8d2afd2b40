"""Nesting of spans: perfect trees against the tree they were made from, and what real recordings do to them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slipstream.analysis.nesting import nest

# A tree as nested lists; every node is [time before the first child, (child, time after it)...].
TREES = st.recursive(
    st.just([]), lambda children: st.lists(st.tuples(children, st.integers(0, 5)), max_size=4), max_leaves=25
)


def laid_out(tree: list, start: int, depth: int, parent: int, spans: list[list[int]]) -> int:
    """Append [start, end, depth, parent] of each node, outer ones first; the end of the tree."""
    mine = len(spans)
    spans.append([start, 0, depth, parent])
    at = start + 1
    for child, after in tree:
        at = laid_out(child, at, depth + 1, mine, spans) + after
    spans[mine][1] = at + 1
    return at + 1


@given(TREES, TREES, st.randoms(use_true_random=False))
def test_a_perfect_tree_is_found_again_in_any_order(first: list, second: list, random: object) -> None:
    spans: list[list[int]] = []
    threads: list[int] = []
    for thread, tree in ((3, first), (8, second)):
        laid_out(tree, 10, 0, -1, spans)
        threads += [thread] * (len(spans) - len(threads))
    order = list(range(len(spans)))
    random.shuffle(order)  # type: ignore[attr-defined]
    found = nest([threads[i] for i in order], [spans[i][0] for i in order], [spans[i][1] for i in order])
    for here, i in enumerate(order):
        start, end, depth, parent = spans[i]
        inside = sum(span[1] - span[0] for span in spans if span[3] == i)
        assert found.depth[here] == depth
        assert (order[found.parent[here]] if found.parent[here] >= 0 else -1) == parent
        assert found.self_ns[here] == end - start - inside


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9_000), st.integers(0, 6_000)), max_size=25),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 16_000)), max_size=10),
)
def test_whatever_the_spans_own_times_add_up_and_lookups_agree(
    spans: list[tuple[int, int, int]], queries: list[tuple[int, int]]
) -> None:
    thread, start = [span[0] for span in spans], [span[1] for span in spans]
    found = nest(thread, start, [span[1] + span[2] for span in spans])
    length = found.end - found.start
    assert (found.self_ns >= 0).all()
    assert (length >= 0).all()
    for root in np.unique(found.root):
        assert found.parent[root] == -1
        assert found.self_ns[found.root == root].sum() == length[root]
    for (who, when), got in zip(
        queries, found.innermost([q[0] for q in queries], [q[1] for q in queries]), strict=True
    ):
        around = [i for i in range(len(spans)) if thread[i] == who and found.start[i] <= when < found.end[i]]
        assert (got in around) if around else got == -1
        if around:
            assert found.depth[got] == max(found.depth[i] for i in around)


def test_a_child_that_outlasts_its_parent_by_rounding_stays_a_child() -> None:
    found = nest([0, 0], [0, 100], [1_000, 1_001])
    assert found.parent.tolist() == [-1, 0]
    assert found.self_ns.tolist() == [100, 900]


def test_a_call_without_return_ends_with_the_call_around_it() -> None:
    # main > f > (g never returns); main > h after f
    found = nest([0] * 4, [0, 10_000, 12_000, 60_000], [100_000, 50_000, 1_000_000, 70_000])
    assert found.parent.tolist() == [-1, 0, 1, 0]
    assert found.end.tolist() == [100_000, 50_000, 50_000, 70_000]
    assert found.self_ns.sum() == 100_000


def test_neighbours_that_overlap_by_rounding_stay_side_by_side() -> None:
    found = nest([0, 0, 0], [0, 999, 1_500], [1_000, 5_000, 1_600])
    assert found.parent.tolist() == [-1, -1, 1]
    assert found.self_ns.tolist() == [1_000, 3_900, 100]


def test_spans_that_really_overlap_nest_in_the_earlier_one() -> None:
    found = nest([0, 0], [0, 5_000], [20_000, 90_000])
    assert found.parent.tolist() == [-1, 0]
    assert found.self_ns.tolist() == [5_000, 15_000]


def test_of_equal_spans_the_smaller_id_is_outside() -> None:
    found = nest([0, 0, 0], [5, 5, 5], [9, 9, 9], tie=[30, 10, 20])
    assert found.depth.tolist() == [2, 0, 1]


def test_threads_do_not_nest_in_each_other() -> None:
    found = nest([1, 2], [0, 10], [100, 20])
    assert found.parent.tolist() == [-1, -1]


def test_nothing() -> None:
    assert nest([], [], []).innermost([0], [5]).tolist() == [-1]
