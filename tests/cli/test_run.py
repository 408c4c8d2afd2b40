import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from slipstream.capture import JobSpec, Outcome
from slipstream.cli import running
from slipstream.model import NotATrace, json_schema
from slipstream.store import RunFolder, RunInfo

Slipstream = Callable[..., subprocess.CompletedProcess[str]]

TRAINING = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 160
    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.zeros(8)

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(Slow(), batch_size=4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
print(sys.argv[1:])
sys.exit(3)
"""
NO_TORCH = "import sys; print(sys.argv[1:]); sys.exit(5)"


def test_a_training_is_recorded_and_diagnosed_and_ends_as_it_would(process: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = process("run", "--steps", "3", "--warmup", "3", "-o", "out", "train.py", "--steps", "9", env=environment)
    assert run.returncode == 3, run.stderr
    assert run.stdout == "['--steps', '9']\n"
    assert "it mostly waits for the data loader (train.py:15)" in run.stderr.replace("\n", " ")
    assert f"slipstream: run folder: {tmp_path / 'out'}" in run.stderr
    findings = json.loads((tmp_path / "out" / "findings.json").read_text())
    jsonschema.Draft202012Validator(json_schema()).validate(findings)
    assert findings["source"]["format"] == "run_folder"
    assert findings["findings"][0]["code"] == "INP001"
    again = process("analyze", "out", "--format", "json")
    assert json.loads(again.stdout)["findings"] == findings["findings"]


def test_a_job_without_training_says_so_and_ends_as_it_would(process: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(NO_TORCH)
    run = process("run", "-o", "out", "job.py", "--quiet", "-o")
    assert (run.returncode, run.stdout) == (5, "['--quiet', '-o']\n")
    assert "torch" in run.stderr
    assert "run folder: " in run.stderr


def test_quiet_says_nothing(process: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(NO_TORCH)
    run = process("run", "--quiet", "-m", "job")
    assert (run.returncode, run.stdout, run.stderr) == (5, "[]\n", "")


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job that has ended with 7 and left a recording behind."""
    folder = RunFolder(tmp_path / "out")
    folder.rank(0).mkdir(parents=True)
    (folder.rank(0) / "trace.json.gz").write_bytes(b"")
    info = RunInfo(
        command=["x.py"],
        working_directory="",
        started_utc="",
        slipstream_version="0",
        python_version="3",
        outcome_code="complete",
    )
    outcome = Outcome(folder=folder, returncode=7, info=info)

    def end_like(returncode: int) -> None:
        raise SystemExit(returncode)

    monkeypatch.setattr(running, "launch", lambda job, on_progress: outcome)
    monkeypatch.setattr(running, "end_like", end_like)
    return folder.root


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotATrace("it holds no event"), "slipstream: the recording cannot be analysed: it holds no event\n"),
        (ZeroDivisionError("a defect"), "ZeroDivisionError: a defect"),
    ],
)
def test_trouble_of_slipstream_never_changes_how_the_job_ended(
    ended: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    told: str,
) -> None:
    def fail(path: str) -> None:
        raise error

    monkeypatch.setattr(running, "diagnoses", fail)
    with pytest.raises(SystemExit) as ending:
        running.run_job(JobSpec(target="x.py"), "text", quiet=False)
    assert ending.value.code == 7
    assert told in capsys.readouterr().err


def test_the_demo_says_what_it_needs(slipstream: Slipstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipstream.cli.commands.demo.importlib.util.find_spec", lambda name: None)
    run = slipstream("demo")
    assert run.returncode == 2
    assert run.stderr == "slipstream: the demo trains with torch, which is not installed: pip install torch\n"


@pytest.mark.slow
def test_the_demo_trains_records_and_diagnoses(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    small = "--steps 40 --layers 1 --hidden-size 32 --heads 2 --vocab-size 400 --batch-size 4 --max-length 32"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "slipstream", "demo", "--no-tune", "-o", "out", "--", *small.split()]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert run.returncode == 0, run.stderr
    assert "Where the step goes" in run.stderr
    findings = json.loads((tmp_path / "out" / "findings.json").read_text())
    places = {op["location"]["file"] for op in findings["top_ops"] if op["location"]}
    assert any(file.endswith("train_bert.py") for file in places)
