"""The search on a small real job, and what it leaves behind."""

import os
from pathlib import Path

import pytest

from slipstream.capture.job import Choice, JobSpec
from slipstream.cli.tuning import seconds
from slipstream.model import BadInput, Gain
from slipstream.reports import render
from slipstream.tuning import Protocol, look_around
from slipstream.tuning.registry import choices_of
from slipstream.tuning.search import Effort, Wishes, tune
from slipstream.tuning.tuned import read_tuned, with_treatments, write_tuned

JOB = """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(30)])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(10):
    for (x,) in DataLoader(TensorDataset(torch.randn(256, 16)), batch_size=4, shuffle=True):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
QUICK = Protocol(repetitions=1, warmup_steps=3, rounds=5, steps_per_turn=2, most_foreign_load=None)
GAIN = Gain(low=0.0, expected=0.1, high=0.2, unit="step_time", basis="cost")


@pytest.fixture
def job(tmp_path: Path) -> JobSpec:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    return JobSpec(target=str(script))


def test_every_treatment_has_its_fate_and_one_process_is_no_proof(job: JobSpec, tmp_path: Path) -> None:
    only = choices_of("fused_optimizer,garbage-collection,cudnn_benchmark,matmul_precision")
    result, choices = tune(
        job,
        tmp_path / "tuning",
        look_around(os.environ | {"OMP_NUM_THREADS": "1"}),
        Wishes(only=only),
        Effort(screening=QUICK, confirmation=QUICK, numerics_steps=8),
        {"fused_optimizer": GAIN},
    )
    fates = {one.name: one for one in result.tried}
    assert fates["cudnn_benchmark"].stage == "not_applicable"
    assert fates["matmul_precision"].stage == "not_applicable"
    for name in ("fused_optimizer", "garbage_collection", "combination"):
        one = fates[name]
        assert one.numerics is not None
        assert one.numerics.sameness == "same", one.numerics
        assert one.measured is not None
        assert one.measured.verdict == "cannot_tell"
        assert one.measured.reason == "1 pairs of processes were measured, and a verdict needs 8"
    assert fates["fused_optimizer"].forecast == GAIN
    assert fates["fused_optimizer"].evidence == ("fused_optimizer: 1 of 1 param groups of AdamW have fused=True",)
    assert (result.kept, choices) == (None, ())
    text = render(result)
    assert "Nothing is kept: no treatment is proven faster and computes the same." in text
    assert '"kind": "tuning"' in render(result, "json")
    for format in ("markdown", "html", "csv"):
        assert "combination" in render(result, format)


def test_what_changes_the_results_needs_consent(job: JobSpec, tmp_path: Path) -> None:
    result, _ = tune(
        job,
        tmp_path / "tuning",
        look_around(),
        Wishes(only=choices_of("autocast,matmul_precision")),
        Effort(screening=QUICK, confirmation=QUICK),
    )
    assert {one.stage for one in result.tried} <= {"needs_consent", "not_applicable"}
    assert result.noise is None


def test_tuned_treatments_are_read_back_and_applied(job: JobSpec, tmp_path: Path) -> None:
    choices = (Choice(name="fused_optimizer", options={"form": "foreach"}), Choice(name="garbage_collection"))
    file = tmp_path / "tuned.toml"
    write_tuned(file, choices, ["written by a test"])
    assert read_tuned(file) == choices
    ready = with_treatments(job, choices)
    assert ready.treatments == choices
    assert "slipstream.tuning.applying" in ready.parts
    file.write_text('[[treatment]]\nname = "magic"\n')
    with pytest.raises(BadInput, match="there is no treatment magic"):
        read_tuned(file)
    file.write_text("treatment = 3")
    with pytest.raises(BadInput, match="is not what slipstream tune writes"):
        read_tuned(file)
    with pytest.raises(BadInput, match="cannot be applied here"):
        with_treatments(job, (Choice(name="cudnn_benchmark"),))


def test_times_of_the_command_line() -> None:
    assert [seconds(text) for text in ("90s", "10m", "1.5h", "600", None)] == [90, 600, 5400, 600, None]
    for text in ("", "soon", "-3m", "0"):
        with pytest.raises(BadInput, match="is no time"):
            seconds(text)
