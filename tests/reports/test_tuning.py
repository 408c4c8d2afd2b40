"""A tuning as a table: what was tried, and why the rest was not."""

from typing import Any

import pytest

from slipstream.model import Numerics, Seeds, Tried, Tuning
from slipstream.reports import render


def tried(name: str, **changes: Any) -> Tried:
    common: dict[str, Any] = {
        "title": name,
        "treatments": (name,),
        "fix_class": "rounding",
        "changes_random_stream": False,
        "stage": "not_applicable",
        "reason": f"no {name} here",
    }
    return Tried(name=name, **(common | changes))


def tuning(*tried_: Tried, kept: str | None = None) -> Tuning:
    return Tuning(
        command=("train.py",), protocol="8 pairs", noise=None, disturbed_rounds=0, rounds=0, tried=tried_, kept=kept
    )


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_a_few_that_do_not_apply_say_why(format: str) -> None:
    shown = render(tuning(*(tried(f"treatment{number}") for number in range(3))), format)
    assert "no treatment2 here" in shown
    assert "--list says why" not in shown


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_many_that_do_not_apply_share_a_sentence(format: str) -> None:
    shown = render(tuning(*(tried(f"treatment{number}") for number in range(4))), format)
    assert "no treatment2 here" not in shown
    assert "treatment3" in shown
    assert "--list says why" in " ".join(shown.split())


def test_what_seeds_said_of_what_is_kept() -> None:
    from slipstream.model import Measured

    measured = Measured(
        verdict="faster", unit="sample", gain=0.5, low=0.4, high=0.6, confidence=0.99, low_95=0.45, high_95=0.55,
        pairs=8, smallest_detectable=0.05, payback_steps=0,
    )  # fmt: skip
    seeds = (
        Seeds(of="loss", verdict="no_difference_shown", seeds=5, difference=-0.0011, low_95=-0.0075, high_95=0.0053),
        Seeds(
            of="gradient norm", verdict="cannot_tell", reason="why", seeds=0, difference=None, low_95=None, high_95=None
        ),
    )
    numerics = Numerics(sameness="same", dropout=False, steps=20, seeds=seeds)
    shown = render(
        tuning(tried("trim", stage="confirmed", measured=measured, numerics=numerics), kept="trim"), "markdown"
    )
    assert "its mean loss is -0.11 % off (95 %: -0.75 to +0.53 %)" in shown
    assert "Whether its mean gradient norm is the same with dropout cannot be told: why." in shown
