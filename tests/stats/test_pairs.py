"""Verdicts on pairs of processes, on series whose truth is known."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from slipstream.stats import ALPHA, LEAST_PAIRS, drift_within, drifts_across, judge, screen
from slipstream.stats.pairs import smallest_detectable, t_interval

TRIALS = 1500
PAIRS = 8


def draw(seed: int, shift: float = 0.0, variants: int = 1, spread: float = 0.01) -> dict[str, npt.NDArray[np.float64]]:
    chance = np.random.default_rng(seed)
    return {f"variant {n}": shift + spread * chance.standard_normal(PAIRS) for n in range(variants)}


def wrong_families(variants: int) -> int:
    verdicts = (judge(draw(seed, variants=variants)).values() for seed in range(TRIALS))
    return sum(any(effect.verdict != "no_difference_shown" for effect in family) for family in verdicts)


@pytest.mark.parametrize("variants", [1, 4])
def test_a_family_without_any_difference_has_a_wrong_verdict_as_rarely_as_stated(variants: int) -> None:
    """Of 1,500 families 15 are expected; more than 30 come by chance once in a thousand times."""
    assert 2 <= wrong_families(variants) <= 30


def test_what_is_told_as_detectable_is_found_with_that_power() -> None:
    least = smallest_detectable(0.01, PAIRS, ALPHA)
    found = sum(judge(draw(seed, shift=-least))["variant 0"].verdict == "faster" for seed in range(TRIALS))
    assert 0.77 <= found / TRIALS <= 0.83


def test_verdict_and_interval_agree() -> None:
    for seed in range(200):
        for effect in judge(draw(seed, shift=-0.012, variants=4)).values():
            assert effect.low is not None
            assert effect.high is not None
            assert (effect.verdict == "faster") == (effect.high < 1)
            assert (effect.verdict == "slower") == (effect.low > 1)
            assert effect.low < effect.ratio < effect.high  # type: ignore[operator]


def test_more_variants_ask_for_more_evidence() -> None:
    values = draw(3, shift=-0.02)["variant 0"]
    alone = judge({"a": values})["a"]
    among = judge({"a": values} | draw(4, variants=3))["a"]
    assert alone.high < among.high  # type: ignore[operator]
    assert alone.smallest_detectable < among.smallest_detectable  # type: ignore[operator]
    assert (alone.low_95, alone.high_95) == (among.low_95, among.high_95)


def test_holm_stops_at_the_first_that_is_not_shown() -> None:
    """The second passes at alpha / 1 but not at alpha / 2, and so does not count though the third is weaker."""
    sure, doubtful = np.full(PAIRS, -0.1) + np.linspace(-1, 1, PAIRS) * 0.001, draw(0)["variant 0"] * 0.1
    found = judge({"sure": sure, "doubtful": doubtful, "none": draw(1)["variant 0"]})
    assert [found[name].verdict for name in ("sure", "doubtful", "none")] == [
        "faster",
        "no_difference_shown",
        "no_difference_shown",
    ]
    assert found["sure"].confidence == pytest.approx(1 - ALPHA / 3)


def test_too_few_pairs_cannot_be_told() -> None:
    effect = judge({"a": [-0.5] * (LEAST_PAIRS - 1)})["a"]
    assert effect.verdict == "cannot_tell"
    assert effect.reason == f"{LEAST_PAIRS - 1} pairs of processes were measured, and a verdict needs {LEAST_PAIRS}"
    assert effect.low is None
    assert judge({"a": []})["a"].ratio is None


def test_processes_of_two_kinds_are_a_wide_interval_not_a_verdict() -> None:
    """Every process lands by chance on one of two speeds, 10 % apart, whatever the variant."""
    wrong = 0
    for seed in range(400):
        chance = np.random.default_rng(seed)
        base, variant = (0.1 * chance.integers(0, 2, PAIRS) for _ in range(2))
        wrong += judge({"a": variant - base + 0.001 * chance.standard_normal(PAIRS)})["a"].verdict != (
            "no_difference_shown"
        )
    assert wrong <= 12


def test_an_outlier_process_hides_an_effect_rather_than_making_one() -> None:
    values = draw(5)["variant 0"]
    values[2] -= 0.5
    assert judge({"a": values})["a"].verdict == "no_difference_shown"


def test_the_interval_is_students() -> None:
    """Against the table: t(0.975; 7) = 2.3646."""
    values = np.arange(8.0)
    low, high = t_interval(values, 0.05)
    assert (high - low) / 2 == pytest.approx(2.3646 * np.std(values, ddof=1) / math.sqrt(8), rel=1e-4)


def walk(seed: int, rounds: int = 30, change: float = 0.0) -> list[npt.NDArray[np.float64]]:
    """Rounds that depend on the ones before: autocorrelation 0.7."""
    chance = np.random.default_rng(seed)
    series = []
    for _ in range(PAIRS):
        noise = np.zeros(rounds)
        for at in range(1, rounds):
            noise[at] = 0.7 * noise[at - 1] + 0.005 * chance.standard_normal()
        series.append(noise + np.linspace(0, change, rounds))
    return series


def test_dependent_rounds_are_no_drift_and_a_drift_is_one() -> None:
    wrong = sum(drift_within(walk(seed)).shown for seed in range(300))  # type: ignore[union-attr]
    assert wrong <= 10
    drift = drift_within(walk(1, change=0.05))
    assert drift is not None
    assert drift.shown
    assert drift.low < 0.05 < drift.high
    assert drift_within(walk(1)[: LEAST_PAIRS - 1]) is None


def test_a_trend_from_pair_to_pair_is_seen() -> None:
    assert drifts_across([0.01 * place for place in range(PAIRS)])
    assert drifts_across([0.0] * PAIRS) is False
    assert drifts_across([0.0] * 3) is None


def test_screening_keeps_the_best_and_gives_no_verdict() -> None:
    kept = screen({"a": [-0.1, -0.1], "b": [0.1], "c": [-0.3], "d": [-0.2], "e": [-0.05], "f": []})
    assert kept.kept == ("c", "d", "a")
    assert kept.dropped == {
        "f": "it was not measured",
        "e": "3 others seemed faster when they were screened (4.9 % less time)",
        "b": "it did not seem faster when it was screened (10.5 % more time)",
    }
