"""Measurements whose truth is known -> verdicts."""

from collections.abc import Callable

import msgspec
import numpy as np

from slipstream.capture.job import Choice, JobSpec
from slipstream.tuning import Arm, Measurement, Plan, Proof, Protocol, prove
from slipstream.tuning.applying import Proved
from slipstream.tuning.trials.plan import BASE, TWIN
from slipstream.tuning.trials.results import ProcessResult, Repetition, Turn, Warmup

MS = 1_000_000
Length = Callable[[str, int, int], float]
"""ns of a turn by arm, repetition and round"""


def measured(
    length: Length,
    *,
    repetitions: int = 8,
    rounds: int = 20,
    samples: Callable[[str], int | None] = lambda arm: 16,
    applied: bool = True,
    foreign: Callable[[int], float] = lambda turn: 0.0,
    warm: Callable[[str], int] = lambda arm: 1000 * MS,
) -> Measurement:
    choice = Choice(name="fused_optimizer")
    plan = Plan(job=JobSpec(target="train.py"), arms=(Arm(name="fused", treatments=(choice,)),), protocol=Protocol())
    proofs = (Proved(choice=choice, proof=Proof(applied=applied, evidence="1 of 1 groups")),)

    def process(arm: str, repetition: int) -> ProcessResult:
        return ProcessResult(
            arm=arm,
            repetition=repetition,
            outcome="measured",
            warmup=Warmup(wall_ns=warm(arm), step_ns=(MS,) * 9, resident_bytes=1),
            turns=tuple(
                Turn(
                    wall_ns=round(length(arm, repetition, turn)),
                    cpu_ns=MS,
                    steps=1,
                    samples=samples(arm),
                    foreign_cores=foreign(turn),
                )
                for turn in range(rounds)
            ),
            proofs=proofs if arm == "fused" else (),
        )

    return Measurement(
        plan=plan,
        cores_allowed=2,
        repetitions=tuple(
            Repetition(
                number=number,
                seed=number,
                mode="interleaved",
                mode_reason="",
                processes=tuple(process(arm, number) for arm in (BASE, TWIN, "fused")),
            )
            for number in range(repetitions)
        ),
    )


def noisy(seed: int = 0, gain: float = 0.0, twin: float = 0.0) -> Length:
    chance = np.random.default_rng(seed)
    left = {BASE: 1.0, TWIN: 1 - twin, "fused": 1 - gain}
    return lambda arm, repetition, turn: 20 * MS * left[arm] * (1 + 0.01 * chance.standard_normal())


def test_a_gain_is_proven_with_its_size_and_evidence() -> None:
    verdicts = prove(measured(noisy(gain=0.1)))
    (fused,) = verdicts.arms
    assert (fused.verdict, fused.reason, fused.unit) == ("faster", None, "sample")
    assert fused.effect.low < 0.9 < fused.effect.high  # type: ignore[operator]
    assert fused.ratio_of_sums is not None
    assert abs(fused.ratio_of_sums - 0.9) < 0.01
    assert fused.evidence == ("fused_optimizer: 1 of 1 groups",)
    assert verdicts.noise.verdict == "no_difference_shown"


def test_no_gain_is_no_verdict() -> None:
    (fused,) = prove(measured(noisy())).arms
    assert fused.verdict == "no_difference_shown"
    assert fused.effect.smallest_detectable is not None


def test_without_proof_of_application_there_is_no_verdict() -> None:
    (fused,) = prove(measured(noisy(gain=0.1), applied=False)).arms
    assert fused.verdict == "cannot_tell"
    assert fused.reason == "it did not take effect: fused_optimizer: 1 of 1 groups"


def test_time_is_compared_per_sample() -> None:
    """A batch of twice the samples in 1.8 times the time is faster; without samples it is not comparable so."""
    double = measured(noisy(gain=-0.8), samples=lambda arm: 32 if arm == "fused" else 16)
    assert prove(double).arms[0].verdict == "faster"
    unknown = prove(measured(noisy(gain=-0.8), samples=lambda arm: None)).arms[0]
    assert (unknown.verdict, unknown.unit) == ("slower", "step")


def test_identical_copies_that_differ_widen_every_interval() -> None:
    verdicts = prove(measured(noisy(gain=0.03, twin=0.05)))
    (note,) = verdicts.noise_notes
    assert note.startswith("identical copies differ by 5.")
    fused = verdicts.arms[0]
    assert fused.verdict == "no_difference_shown"
    assert fused.effect.low < 0.95 < 1 < fused.effect.high  # type: ignore[operator]
    assert fused.effect.smallest_detectable > 0.05  # type: ignore[operator]
    assert prove(measured(noisy(gain=0.3, twin=0.05))).arms[0].verdict == "faster"


def test_disturbed_rounds_do_not_count() -> None:
    slow = noisy(gain=0.1)

    def length(arm: str, repetition: int, turn: int) -> float:
        return slow(arm, repetition, turn) * (3 if turn < 8 and arm == "fused" else 1)

    found = prove(measured(length, foreign=lambda turn: 1.5 if turn < 8 else 0.0))
    assert found.arms[0].verdict == "faster"
    assert found.disturbed_rounds == 8 * 8 * 3
    all_disturbed = prove(measured(length, foreign=lambda turn: 1.5)).arms[0]
    assert all_disturbed.verdict == "cannot_tell"
    assert all_disturbed.reason == "0 pairs of processes were measured, and a verdict needs 8"


def test_a_gain_that_melts_away_is_no_gain() -> None:
    calm = noisy()

    def melting(arm: str, repetition: int, turn: int) -> float:
        return calm(arm, repetition, turn) * (1 - 0.1 * (1 - turn / 10) if arm == "fused" else 1)

    (fused,) = prove(measured(melting)).arms
    assert fused.verdict == "cannot_tell"
    assert fused.reason is not None
    assert "from the first to the last round" in fused.reason


def test_a_longer_warm_up_has_to_be_paid_back() -> None:
    """Ten seconds more, two of twenty milliseconds saved per step: 5,000 steps."""
    warm = {BASE: 1000 * MS, TWIN: 1000 * MS, "fused": 11_000 * MS}
    gaining = prove(measured(noisy(gain=0.1), warm=warm.__getitem__)).arms[0]
    assert gaining.payback_steps is not None
    assert abs(gaining.payback_steps - 5000) < 250
    assert prove(measured(noisy(gain=-0.1), warm=warm.__getitem__)).arms[0].payback_steps is None
    assert prove(measured(noisy(gain=0.1))).arms[0].payback_steps == 0


def test_an_arm_that_was_left_out_says_why() -> None:
    measurement = msgspec.structs.replace(measured(noisy(gain=0.1)), left_out={"fused": "it ended with status 1"})
    (fused,) = prove(measurement).arms
    assert (fused.verdict, fused.reason) == ("cannot_tell", "fused was not measured: it ended with status 1")
