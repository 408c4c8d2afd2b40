"""Long training: windows within a budget, on slow-downs and when asked for."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import slipstream
from slipstream.capture.archive import Archive
from slipstream.capture.watching import APART, RECENT, Watcher

MS = 1_000_000


def steps(watcher: Watcher, count: int, ms: float = 10, disturbed: bool = False) -> None:
    for _ in range(count):
        watcher.step(round(ms * MS), disturbed)


def first_window(watcher: Watcher, cost_ms: float = 100) -> None:
    """Twenty steps of 10 ms, six recorded ones of 20 ms, and what closing takes."""
    steps(watcher, 20)
    steps(watcher, 6, 20, disturbed=True)
    watcher.cost(round(cost_ms * MS))
    watcher.closed()


def test_the_average_stays_below_what_is_allowed() -> None:
    """160 ms a window (60 by slower steps): at 1 % one every 16 s, which is 1,600 steps."""
    watcher = Watcher(0.01)
    first_window(watcher)
    opened = []
    for number in range(10_000):
        steps(watcher, 1)
        if watcher.due(asked=False) is not None:
            opened.append(number)
            steps(watcher, 6, 20, disturbed=True)
            watcher.cost(100 * MS)
            watcher.closed()
    apart = [late - early for early, late in itertools.pairwise(opened)]
    assert 4 <= len(opened) <= 7
    assert all(1_500 <= one <= 1_700 for one in apart)
    assert watcher.overhead <= 0.0101


def test_a_dear_window_is_followed_by_a_longer_pause() -> None:
    cheap, dear = Watcher(0.05), Watcher(0.05)
    first_window(cheap, 10)
    first_window(dear, 1_000)

    def until_due(watcher: Watcher) -> int:
        for number in range(100_000):
            steps(watcher, 1)
            if watcher.due(asked=False) is not None:
                return number
        raise AssertionError("never due")

    assert until_due(dear) > 5 * until_due(cheap)


@pytest.mark.parametrize(("ratio", "found"), [(1.35, True), (1.25, False)])
def test_a_slow_down_asks_for_a_window_whatever_the_budget(ratio: float, found: bool) -> None:
    watcher = Watcher(1e-6)
    first_window(watcher)
    steps(watcher, 100)
    reasons = []
    for _ in range(3 * RECENT):
        steps(watcher, 1, 10 * ratio)
        reasons.append(watcher.due(asked=False))
    assert ("slow_down" in reasons) is found
    steps(watcher, 100, 10 * ratio)
    assert watcher.due(asked=False) != "slow_down" or not found  # it is the usual by now


def test_windows_stay_apart_unless_asked_for() -> None:
    watcher = Watcher(1.0)
    first_window(watcher)
    steps(watcher, APART - 1)
    assert watcher.due(asked=False) is None
    assert watcher.due(asked=True) == "asked"
    steps(watcher, 1)
    assert watcher.due(asked=False) == "interval"


def test_the_first_the_slowest_and_the_latest_are_kept(tmp_path: Path) -> None:
    archive = Archive(keep=3)
    for number, median in enumerate((10, 11, 30, 12, 13, 14)):
        archive.put_away(tmp_path)
        (tmp_path / "trace.json.gz").write_bytes(b"x")
        archive.note(tmp_path, 100 * number, "interval", median * MS)
    listed = json.loads((tmp_path / "windows.json").read_text())
    assert [one["first_step"] for one in listed] == [0, 200, 400, 500]
    assert listed[-1]["file"] == "trace.json.gz"
    assert {path.name for path in (tmp_path / "windows").iterdir()} == {
        "step00000000.json.gz",
        "step00000200.json.gz",
        "step00000400.json.gz",
    }


JOB = """
import time, pathlib, sys
import torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(700):
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.002 if step < 400 else 0.006)
    if step == 250:
        pathlib.Path(sys.argv[1], "record-now").touch()
"""


def test_a_watched_job(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script, folder = tmp_path / "train.py", tmp_path / "run"
    script.write_text(JOB)
    command = [sys.executable, "-m", "slipstream", "run", "--quiet", "--watch", "--max-overhead", "0.0001"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "-o", str(folder), str(script), str(folder)], check=True, timeout=240, env=environment)
    windows = json.loads((folder / "rank0" / "windows.json").read_text())
    assert [one["reason"] for one in windows] == ["first", "asked", "slow_down"]
    assert 250 <= windows[1]["first_step"] < 500
    assert 400 <= windows[2]["first_step"] < 500
    assert windows[2]["median_step_ns"] > 1.3 * windows[0]["median_step_ns"]
    for one in windows:
        trace = slipstream.load(folder / "rank0" / one["file"])
        assert not isinstance(trace, list)
        assert trace.table("steps").height == 6
    last = slipstream.load(folder)
    assert not isinstance(last, list)
    assert last.table("steps")["number"].min() == windows[2]["first_step"]
    assert last.table("job_steps").height == 700
