"""Small real jobs in processes of their own, taking turns."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from slipstream.capture.job import Choice, JobSpec
from slipstream.model import BadInput
from slipstream.tuning import Arm, Environment, Measurement, Plan, Protocol, look_around, measure
from slipstream.tuning.trials.plan import BASE, TWIN

JOB = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(TensorDataset(torch.randn(512, 8)), batch_size=4, shuffle=True)
losses = []
for number, (x,) in enumerate(data):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    {body}
print(sum(losses))
"""
QUICK = Protocol(repetitions=1, warmup_steps=3, rounds=6, steps_per_turn=2, most_foreign_load=None)
FUSED = Arm(name="fused", treatments=(Choice(name="fused_optimizer"),))


@pytest.fixture(scope="module")
def environment() -> Environment:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SLIPSTREAM")}
    return look_around(variables | {"OMP_NUM_THREADS": "1"})


@pytest.fixture
def trial(tmp_path: Path, environment: Environment) -> Callable[..., Measurement]:
    def run(body: str = "pass", arms: tuple[Arm, ...] = (FUSED,), protocol: Protocol = QUICK) -> Measurement:
        script = tmp_path / "job.py"
        script.write_text(JOB.replace("{body}", body))
        job = JobSpec(target=str(script))
        return measure(Plan(job=job, arms=arms, protocol=protocol), tmp_path / "trial", environment)

    return run


def test_every_arm_has_the_same_turns_and_proofs(trial: Callable[..., Measurement]) -> None:
    (repetition,) = trial().repetitions
    assert repetition.mode == "interleaved"
    assert {process.arm for process in repetition.processes} == {BASE, TWIN, "fused"}
    for process in repetition.processes:
        assert process.outcome == "measured", process.reason
        assert [(turn.steps, turn.samples) for turn in process.turns] == [(2, 8)] * 6
        assert all(turn.wall_ns > 0 for turn in process.turns)
        assert process.warmup is not None
        assert len(process.warmup.step_ns) == 2
    fused = repetition.of("fused")
    assert fused is not None
    assert [proved.proof.applied for proved in fused.proofs] == [True]


def test_alternating_processes_never_run_together(trial: Callable[..., Measurement]) -> None:
    quick = Protocol(
        repetitions=1, warmup_steps=3, rounds=6, steps_per_turn=2, most_foreign_load=None, mode="alternating"
    )
    (repetition,) = trial(protocol=quick).repetitions
    assert repetition.mode == "alternating"
    assert {len(process.turns) for process in repetition.processes} == {6}


def test_a_failure_is_a_result_and_the_others_go_on(trial: Callable[..., Measurement]) -> None:
    body = "if number == 8 and optimizer.param_groups[0]['fused']: raise RuntimeError('no luck')"
    measurement = trial(body)
    fused, base = (measurement.repetitions[0].of(name) for name in ("fused", BASE))
    assert fused is not None
    assert base is not None
    assert (fused.outcome, fused.exit_status, len(base.turns)) == ("failed", 1, 6)
    assert "RuntimeError: no luck" in measurement.left_out["fused"]


def test_a_hanging_process_is_ended(trial: Callable[..., Measurement]) -> None:
    body = "time.sleep(60 if number == 8 and optimizer.param_groups[0]['fused'] else 0)"
    quick = Protocol(
        repetitions=1, warmup_steps=3, rounds=6, steps_per_turn=2, most_foreign_load=None, step_timeout_s=3
    )
    measurement = trial(body, protocol=quick)
    assert measurement.left_out == {"fused": "it did not end a turn of 2 steps within 3 s"}


def test_a_job_that_is_too_short_says_so(trial: Callable[..., Measurement]) -> None:
    measurement = trial("if number == 7: break")
    assert measurement.left_out[BASE] == (
        "it ended after 8 steps: 2 turns of its steps were measured, and 5 are needed"
    )


def test_a_job_without_steps_says_so(tmp_path: Path, environment: Environment) -> None:
    script = tmp_path / "idle.py"
    script.write_text("import torch")
    plan = Plan(job=JobSpec(target=str(script)), arms=(FUSED,), protocol=QUICK)
    measurement = measure(plan, tmp_path / "trial", environment)
    assert measurement.left_out == {BASE: "it ended without a step of an optimizer"}


def test_what_was_measured_is_not_measured_again(trial: Callable[..., Measurement]) -> None:
    first = trial()
    assert trial() == first
    with pytest.raises(BadInput, match="holds another measurement"):
        trial(arms=())
