"""What trains wrongly is told from what trains the same: records made by hand, and real runs."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipstream.capture.job import Choice, JobSpec
from slipstream.tuning import Variant, check_variants, look_around
from slipstream.tuning.numerics.comparing import compare_runs
from slipstream.tuning.numerics.observation import Observed, Update
from slipstream.tuning.numerics.seeds import compare_over_seeds

ROOT = Path(__file__).parents[2]


def observed(noise: float = 0.0, **changes: Any) -> Observed:
    base = Observed(
        losses=tuple(2.0 - 0.01 * step * (1 + noise) for step in range(20)),
        gradient_norms=tuple(1.0 + noise for _ in range(20)),
        updates=((Update(norm=1.0 + noise, sample=(0.5 + noise, -0.5)),),) * 3,
        learning_rates=tuple((0.001 * (step + 1),) for step in range(20)),
        optimizers=({"class": "AdamW", "groups": [{"parameters": [[4, 4]], "weight_decay": "0.01"}]},),
        calls={"step": 20, "zero_grad": 20, "clip_grad_norm_": 20, "clipped": 3},
        samples=320,
    )
    return msgspec.structs.replace(base, **changes)


OTHERS = [observed(), observed(1e-7), observed(-1e-7)]


def test_roundings_are_the_same() -> None:
    compared = compare_runs(observed(), observed(5e-7), OTHERS)
    assert (compared.sameness, compared.reasons, compared.notes) == ("same", (), ())
    assert compared.steps == 20


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"losses": tuple(2.02 - 0.0101 * step for step in range(20))}, "losses differ by 1.0e-02"),
        ({"gradient_norms": (1.01,) * 20}, "gradient norms differ by 1.0e-02"),
        ({"updates": ((Update(norm=1.0, sample=(0.5, -0.4995)),),) * 3}, "updates differ by 7.1e-04"),
        ({"losses": (float("nan"),) * 20}, "losses differ by inf"),
        ({"losses": (2.0,) * 10}, "10 backward passes where there were 20"),
        ({"learning_rates": ((0.001,),) * 20}, "the learning rate takes another course"),
        ({"samples": 160}, "160 samples were fetched, not 320"),
        ({"calls": {"step": 20, "zero_grad": 20}}, "clip_grad_norm_ was called 0 times, not 20 times"),
        (
            {"optimizers": ({"class": "SGD", "groups": [{"parameters": [[4, 4]], "weight_decay": "0"}]},)},
            "weight_decay of the optimizer is 0, not 0.01",
        ),
    ],
)
def test_what_differs_is_named(changes: dict[str, Any], reason: str) -> None:
    compared = compare_runs(observed(), observed(**changes), OTHERS)
    assert compared.sameness == "differs"
    assert any(reason in one for one in compared.reasons), compared.reasons


def test_a_chaotic_job_cannot_be_told() -> None:
    """Where the last digit of the weights decides, a loss off by 1 % would not show."""
    wild = [observed(), observed(losses=tuple(2.0 - 0.01 * step + 0.1 * (step > 1) for step in range(20)))]
    compared = compare_runs(observed(), observed(), wild)
    assert compared.sameness == "cannot_tell"
    assert "drifts apart after 2 steps" in compared.reasons[0]


def test_what_never_happened_is_not_covered() -> None:
    quiet = observed(calls={"step": 20, "zero_grad": 20, "clip_grad_norm_": 20, "clipped": 0})
    compared = compare_runs(quiet, quiet, [quiet])
    assert compared.notes == ("gradients were never long enough to be clipped in 20 calls",)


def with_loss(loss: float) -> Observed:
    return observed(losses=(loss,) * 20, gradient_norms=(1 / loss,) * 20)


BY_SEED = [with_loss(loss) for loss in (2.0, 2.1, 1.9, 2.05)]


def test_seeds_tell_a_shift_from_the_spread_of_dropout() -> None:
    shifted, norms = compare_over_seeds(BY_SEED, [with_loss(loss) for loss in (2.2, 2.33, 2.07, 2.26)])
    assert (shifted.verdict, norms.verdict) == ("differs", "differs")
    assert shifted.difference is not None
    assert abs(shifted.difference - 0.1) < 0.01
    scattered, _ = compare_over_seeds(BY_SEED, [with_loss(loss) for loss in (2.02, 2.07, 1.91, 2.04)])
    assert (scattered.verdict, scattered.seeds) == ("no_difference_shown", 4)
    assert scattered.low_95 is not None
    assert scattered.high_95 is not None
    assert scattered.low_95 < 0 < scattered.high_95


def test_a_regular_rounding_is_no_difference() -> None:
    rounded, _ = compare_over_seeds(BY_SEED, [with_loss(one.losses[0] * (1 + 1e-8)) for one in BY_SEED])
    assert rounded.verdict == "no_difference_shown"


def test_seeds_without_an_answer_say_why() -> None:
    alike = [with_loss(2.0)] * 4
    for bases, runs, why in (
        (alike, alike, "draws the same random numbers"),
        (BY_SEED, ["out of memory", *BY_SEED[1:]], "out of memory"),
        (BY_SEED[:2], BY_SEED[:2], "2 seeds were compared"),
        (BY_SEED, [with_loss(float("nan"))] * 4, "the means are 2 and nan"),
    ):
        loss, _ = compare_over_seeds(bases, runs)
        assert loss.verdict == "cannot_tell"
        assert why in str(loss.reason)


def test_dropout_that_was_lost_shows_over_seeds(tmp_path: Path) -> None:
    """With nothing dropped it is the same: only the seeds can tell. The fused optimizer changes no random numbers."""
    script = str(ROOT / "benchmarks" / "numerics_job.py")
    fused = Choice(name="fused_optimizer")
    variants = [
        Variant(name="lost", job=JobSpec(target=script, argv=("mlp", "--wrong", "no_dropout")), dropout=False),
        Variant(name="fused", job=JobSpec(target=script, argv=("mlp",), treatments=(fused,)), dropout=False),
    ]
    environment = look_around(os.environ | {"OMP_NUM_THREADS": "1"})
    job = JobSpec(target=script, argv=("mlp",))
    lost, kept = check_variants(job, variants, tmp_path / "numerics", environment, steps=20, seeds=6)
    assert lost.compared.sameness == "differs", lost.seeds
    assert "the mean gradient norm is" in lost.compared.reasons[0]
    assert kept.compared.sameness == "same"
    assert [one.verdict for one in kept.seeds] == ["no_difference_shown"] * 2


def test_real_runs(tmp_path: Path) -> None:
    """The rest of the table of docs/numerics.md is benchmarks/numerics.py's."""
    script = str(ROOT / "benchmarks" / "numerics_job.py")
    variants = [
        Variant(name=wrong, job=JobSpec(target=script, argv=("mlp", "--wrong", wrong)))
        for wrong in ("loss", "no_dropout", "eval_norm", "no_decay")
    ]
    fused = Choice(name="fused_optimizer")
    variants.append(Variant(name="fused", job=JobSpec(target=script, argv=("mlp",), treatments=(fused,))))
    environment = look_around(os.environ | {"OMP_NUM_THREADS": "1"})
    checked = check_variants(
        JobSpec(target=script, argv=("mlp",)), variants, tmp_path / "numerics", environment, steps=12
    )
    assert {one.arm: one.compared.sameness for one in checked} == {
        "loss": "differs",
        "no_dropout": "differs",
        "eval_norm": "differs",
        "no_decay": "differs",
        "fused": "same",
    }
