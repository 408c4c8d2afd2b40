"""Sequences of kernels that recur."""

from typing import Any

from support.tables import make_tables, span, step


def sequences(names: str, **columns: Any) -> dict[tuple[str, ...], dict[str, Any]]:
    kernels = [span(name, 100 * place, 60, **columns) for place, name in enumerate(names)]
    tables = make_tables(steps=[step(1, 0, 10_000)], kernels=kernels)
    return {tuple(row["names"].split("\n")): row for row in tables["kernel_sequences"].iter_rows(named=True)}


def test_counts_and_times_of_a_recurring_pair() -> None:
    found = sequences("abxabyab")
    assert set(found) == {("a", "b")}
    row = found["a", "b"]
    assert (row["length"], row["count"], row["kernel_ns"], row["span_ns"], row["gap_ns"]) == (2, 3, 360, 480, 120)
    assert row["share"] == 6 / 8


def test_occurrences_do_not_overlap() -> None:
    found = sequences("aaaaa")
    assert {names: row["count"] for names, row in found.items()} == {("a", "a"): 2}
    assert sequences("abababab")[("a", "b", "a", "b")]["count"] == 2
    assert sequences("aabaabaa")[("a", "a", "b")]["count"] == 2


def test_longer_ones_up_to_five_and_streams_apart() -> None:
    found = sequences("abcdefabcdef", stream=0)
    assert max(row["length"] for row in found.values()) == 5
    assert found["b", "c", "d", "e", "f"]["count"] == 2
    assert all(row["stream"] == 0 for row in found.values())
    tables = make_tables(
        kernels=[span(name, 100 * place, 10, stream=place % 2) for place, name in enumerate("axbxaxbx")]
    )
    assert {(row["stream"], row["names"]) for row in tables["kernel_sequences"].iter_rows(named=True)} == {
        (0, "a\nb"),
        (1, "x\nx"),
    }
