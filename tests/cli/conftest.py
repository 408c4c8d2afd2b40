"""A small recording, and the command line as a user starts it."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipstream import cli

Slipstream = Callable[..., subprocess.CompletedProcess[str]]


def events(steps: int = 3) -> list[dict[str, Any]]:
    """Steps of 10 ms; in each the host waits 6 ms for the loader, then launches a kernel of 3 ms."""
    found: list[dict[str, Any]] = []

    def add(cat: str, name: str, ts: int, dur: int, pid: int = 7, tid: int = 7, **args: Any) -> None:
        found.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})

    for step in range(steps):
        start = 1000 + step * 10_000
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        add("user_annotation", f"ProfilerStep#{step}", start, 10_000)
        add("user_annotation", loader, start + 100, 6_000)
        add("cpu_op", "aten::mm", start + 6_200, 100, **{"External id": step + 1})
        add("cuda_runtime", "cudaLaunchKernel", start + 6_220, 20, correlation=step + 1, **{"External id": step + 1})
        add(
            "kernel",
            "ampere_sgemm_128x64_tn",
            start + 6_300,
            3_000,
            pid=0,
            correlation=step + 1,
            device=0,
            stream=7,
        )
    return found


def trace(rank: int | None = None, ranks: int | None = None, steps: int = 3) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA Imaginary 100"}],
        "traceEvents": events(steps),
    }
    if rank is not None:
        document["distributedInfo"] = {"rank": rank, "world_size": ranks}
    return document


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace()))
    return path


@pytest.fixture
def two_ranks(tmp_path: Path) -> Path:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}.json").write_text(json.dumps(trace(rank, 2)))
    return folder


@pytest.fixture
def process(tmp_path: Path) -> Slipstream:
    """Starts the command line as a process, in a folder of its own."""

    def start(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "slipstream", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, **options)

    return start


@pytest.fixture
def slipstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Slipstream:
    """The same without a process of its own, which is faster."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["slipstream", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ending:
            cli.main()
        shown = capsys.readouterr()
        assert isinstance(ending.value.code, int)
        return subprocess.CompletedProcess(sys.argv, ending.value.code, shown.out, shown.err)

    return call


TRAIN = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float, default=1e-3)
lr = parser.parse_args().lr
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
for step in range(40):
    model(torch.randn(4, 16)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def late_launch(start: int, correlation: int) -> list[dict[str, Any]]:
    """An op that takes the host longer than the device has work for."""
    common = {"ph": "X", "pid": 7, "tid": 7}
    linked = {"correlation": correlation, "External id": correlation}
    return [
        {**common, "cat": "cpu_op", "name": "aten::add", "ts": start + 9_320, "dur": 480, "args": linked},
        {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 9_780, "dur": 10, "args": linked},
        {"ph": "X", "cat": "kernel", "name": "elementwise", "pid": 0, "tid": 7, "ts": start + 9_800, "dur": 50,
         "args": {**linked, "device": 0, "stream": 7}},
    ]  # fmt: skip


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """The files that examples name: recordings under every name, a script, a package, kept treatments."""
    document = trace(steps=6)
    document["traceEvents"] += [launch for step in range(6) for launch in late_launch(1000 + step * 10_000, 100 + step)]
    text = json.dumps(document)
    for name in ("trace", "before", "after"):
        (tmp_path / f"{name}.json").write_text(text)
        (tmp_path / f"{name}.json.gz").write_bytes(gzip.compress(text.encode()))
    for folder in ("log", "profiler_logs", "slipstream-runs/monday", "slipstream-runs/tuesday"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "host.1.pt.trace.json").write_text(text)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "train.py").write_text(TRAIN)
    (tmp_path / "tuned.toml").write_text('[[treatment]]\nname = "garbage_collection"\n')
    return tmp_path
