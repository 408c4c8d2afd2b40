import pytest

from support.tables import make_tables, span, step

MS = 1_000_000
US = 1_000


def causes(exchange, after=13 * MS, thread=1):
    """Main thread: an op until 2 ms, another from ``after``; an exchange on another thread."""
    tables = make_tables(
        device_kind="cpu",
        steps=[step(0, 0, 20 * MS)],
        ops=[span("aten::mm", 0, 2 * MS), span("aten::add", after, 20 * MS - after)],
        annotations=[span("gloo:all_reduce", *exchange, thread=thread)],
    )
    rows = tables["idle_spans"].group_by("cause").agg("dur_ns", "inferred")
    return {cause: (sum(dur), inferred[0]) for cause, dur, inferred in rows.iter_rows()}


def test_a_gap_that_ends_with_an_exchange_waited_for_it():
    assert causes((1 * MS, 12 * MS)) == {"comm_wait": (11 * MS, True)}


def test_what_came_before_the_exchange_is_the_hosts():
    assert causes((5 * MS, 8 * MS)) == {"host": (3 * MS, True), "comm_wait": (8 * MS, True)}


@pytest.mark.parametrize(("late_us", "waited"), [(500, True), (501, False)])
def test_a_thread_that_goes_on_later_did_something_else(late_us, waited):
    found = causes((1 * MS, 11 * MS), after=12 * MS + late_us * US)
    assert ("comm_wait" in found) is waited


def test_an_exchange_that_goes_on_in_the_background_is_not_waited_for():
    assert causes((1 * MS, 18 * MS)) == {"host": (11 * MS, True)}
