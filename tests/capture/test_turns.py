"""Which optimizer step closes a training step."""

from slipstream.capture.turns import PATIENCE, Turns


def steps(order: str) -> list[str]:
    """Training steps of a sequence of optimizers, each as the optimizers that stepped in it."""
    turns: Turns[str] = Turns()
    closed: list[str] = []
    for optimizer in order:
        change = turns.stepped(ord(optimizer), optimizer)
        if change.undo:
            closed.pop()
        closed.extend("".join(group) for group in change.closed)
    return closed


def test_one_optimizer() -> None:
    assert steps("aaa") == ["a", "a", "a"]


def test_two_take_turns() -> None:
    assert steps("abababab") == ["ab"] * 4
    assert steps("aba") == ["ab"]  # the second step is not complete


def test_many_take_turns() -> None:
    assert steps("abcdefgh" * 3) == ["abcdefgh"] * 3


def test_the_rarest_closes() -> None:
    assert steps("aaaaab" * 4)[6:] == ["aaaaab"] * 3  # what the first turn is, only the second shows


def test_an_optimizer_that_is_replaced_every_epoch() -> None:
    assert steps("aaabbbccc") == list("aaabbbccc")


def test_one_that_stays_away_is_retired_and_loses_no_step() -> None:
    order = "ab" * 3 + "a" * 20
    found = steps(order)
    assert found[:3] == ["ab"] * 3
    assert found[3:] == ["a"] * 20


def test_retirement_waits_for_twice_the_longest_absence() -> None:
    order = "ab" + "aaaaab" + "a" * (2 * 5 + PATIENCE)
    assert steps(order) == ["ab", "aaaaab"]
    assert len(steps(order + "a")) == 2 + 2 * 5 + PATIENCE + 1


def test_a_newcomer_redefines_what_a_step_is() -> None:
    turns: Turns[str] = Turns()
    assert not turns.stepped(1, "a").redefined
    assert not turns.stepped(1, "a").redefined
    assert turns.stepped(2, "b").redefined
    # ... but not while the first turn is still going on.
    turns = Turns()
    turns.stepped(1, "a")
    assert not turns.stepped(2, "b").redefined
