"""``with slipstream.profile()``: the same recording as under the launcher, and nothing left behind."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import slipstream
from slipstream.model import BadInput

torch = pytest.importorskip("torch")

TRAIN = """
import sys, torch, slipstream
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
loader = DataLoader(TensorDataset(torch.randn(512, 64)), batch_size=8)
losses = []

def train(steps, step=None):
    for number, (x,) in enumerate(loader):
        if number == steps:
            break
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step:
            step()
"""


def told(code: str, folder: Path, **variables: str) -> str:
    script = folder / "train.py"
    script.write_text(TRAIN + code)
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=folder,
        env=os.environ | variables,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_block_is_recorded_with_places(tmp_path: Path) -> None:
    said = told(
        """
with slipstream.profile("out", steps=4) as recorded:
    train(40)
print(recorded.outcome)
print(slipstream.render(recorded.report))
""",
        tmp_path,
    )
    assert "4 steps recorded" in said
    assert "Steps" in said or "step" in said
    info = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (info["outcome_code"], info["options"]["job_steps"]) == (
        "complete",
        39,
    )  # the first step shows the optimizer
    trace = slipstream.load(tmp_path / "out")
    assert not isinstance(trace, list)
    steps = trace.table("job_steps")
    assert steps["optimizer_ns"].min() > 0  # type: ignore[operator]
    assert steps["backward_ns"].min() > 0  # type: ignore[operator]
    assert trace.table("loader_waits").height >= 38
    places = trace.table("statements")
    assert "train.py" in " ".join(map(str, places["file"].unique()))


def test_steps_that_are_told(tmp_path: Path) -> None:
    """Without an optimizer that tells, and with one."""
    said = told(
        """
with slipstream.profile("out", steps=3) as recorded:
    train(30, recorded.step)
print(recorded.outcome)
weight = torch.zeros(3, requires_grad=True)
with slipstream.profile("by-hand", steps=3) as recorded:
    for _ in range(20):
        weight.square().sum().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
        recorded.step()
print(recorded.outcome)
""",
        tmp_path,
    )
    assert said.count("3 steps recorded") == 2
    for name in ("out", "by-hand"):
        assert json.loads((tmp_path / name / "run.json").read_text())["options"]["recorded"] == 3


def test_nothing_is_left_behind_and_results_are_the_same(tmp_path: Path) -> None:
    said = told(
        """
import gc, signal
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.optim import optimizer as module
def state():
    return (optimizer.step, vars(optimizer).get("step"), torch.autograd.backward, _BaseDataLoaderIter.__next__,
            torch.amp.autocast.__enter__, torch.autograd.profiler.profile._prepare_trace, list(gc.callbacks),
            dict(module._global_optimizer_post_hooks), signal.getsignal(signal.SIGTERM), sys.getprofile(),
            sys.gettrace())
torch.manual_seed(0)
start = {name: value.clone() for name, value in model.state_dict().items()}
def fresh():
    model.load_state_dict(start)
    optimizer.state.clear()
    scheduler.last_epoch = 0
    losses.clear()
    for group in optimizer.param_groups:
        group["lr"] = 1e-3
before = state()
fresh(); train(40); plain = list(losses)
fresh()
with slipstream.profile("out", steps=3) as recorded:
    train(40)
assert losses == plain
assert state() == before, [one for one in zip(state(), before) if one[0] != one[1]]
with slipstream.profile("again", steps=3) as recorded:
    train(40)
print(recorded.outcome)
""",
        tmp_path,
    )
    assert "3 steps recorded" in said


def test_a_scheduler_that_comes_within_the_block(tmp_path: Path) -> None:
    said = told(
        """
import warnings
warnings.simplefilter("error")
with slipstream.profile("out", steps=3) as recorded:
    train(5)
    torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    train(30)
train(5)
print(recorded.outcome)
""",
        tmp_path,
    )
    assert "3 steps recorded" in said


def test_a_block_that_ends_early_says_so(tmp_path: Path) -> None:
    said = told(
        """
from slipstream.model import BadInput
with slipstream.profile("out") as recorded:
    train(3)
print(recorded.outcome)
try:
    recorded.report
except BadInput as reason:
    print("told:", reason)
try:
    with slipstream.profile("empty") as recorded:
        raise KeyError("the job's own")
except KeyError:
    print(recorded.outcome)
""",
        tmp_path,
    )
    assert "before the window opened" in said
    assert "told: there is no recording" in said
    assert "no optimizer took a step" in said


def test_under_slipstream_run_the_block_stands_back(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN + 'with slipstream.profile("inner") as recorded:\n    train(40)\nprint(recorded.outcome)\n')
    command = [sys.executable, "-m", "slipstream", "run", "--quiet", "-o", "outer", "train.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=240)
    assert "slipstream run records this process already" in run.stdout
    assert not (tmp_path / "inner").exists()
    assert (tmp_path / "outer" / "findings.json").exists()


def test_a_folder_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(BadInput, match="is not empty"), slipstream.profile(tmp_path):
        pass


def test_a_handler_for_a_profiler_of_ones_own(tmp_path: Path) -> None:
    said: list[str] = []
    handler = slipstream.trace_handler(tmp_path / "logs", said.append)
    model: Any = torch.nn.Linear(16, 16)
    gc.collect()
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=handler, record_shapes=True) as profiler:
        for _ in range(6):
            model(torch.randn(4, 16)).sum().backward()
            profiler.step()
    assert len(said) == 1
    assert "3 steps" in said[0]
    assert [*(tmp_path / "logs").glob("*.pt.trace.json.gz")]
