"""Forecasts against the exact truth: random programs, executed before and after a change.

    .venv/bin/python benchmarks/forecast_synthetic.py

The executor (tests/synthetic) shares no code with the forecast, which sees only the recording of the first execution.
Prints one row per kind of change, as Markdown.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import slipstream
from slipstream.analysis import tables_of
from slipstream.forecast import gain_of, replay_of
from slipstream.model import NotEnoughData
from slipstream.store import Trace
from support.forecasts import FORECASTS
from synthetic.changes import CHANGES, random_job, random_machine
from synthetic.machine import execute
from synthetic.truth import Truth
from synthetic.writer import document

LEAST = 1e-4
"""A change whose true gain is below this in a job has nothing to do in it, and is not counted."""


class Case(msgspec.Struct, frozen=True):
    """One change in one program."""

    change: str
    program: int
    true: float
    low: float
    expected: float
    high: float

    @property
    def time_error(self) -> float:
        """Error of the forecast step time, as a share of the true one."""
        return abs(self.true - self.expected) / (1 - self.true)

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.true <= self.high


def cases(programs: int, seed: int) -> tuple[list[Case], list[float], int]:
    """Every change in every program; replay errors; programs whose forecast was refused."""
    found, errors, refused = [], [], 0
    for number in range(programs):
        dice = random.Random(seed + number)
        machine, program = random_machine(dice), random_job(dice)
        before = Truth(execute(program, machine))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            path.write_bytes(msgspec.json.encode(document(before.execution)))
            trace = slipstream.load(path)
        assert isinstance(trace, Trace)
        tables = tables_of(trace)
        replay = replay_of(tables)
        errors.append(replay.error)
        length = before.end_ns - before.start_ns
        for name, change in CHANGES.items():
            after = Truth(execute(change(program), machine))
            true = 1 - (after.end_ns - after.start_ns) / length
            if abs(true) < LEAST:
                continue
            try:
                gain = gain_of(replay, FORECASTS[name](tables))
            except NotEnoughData:
                refused += 1
                continue
            found.append(Case(name, number, true, gain.low, gain.expected, gain.high))
    return found, errors, refused


def row(name: str, chosen: list[Case]) -> str:
    """One line of the table."""
    gains = np.array([abs(case.true - case.expected) for case in chosen]) * 100
    times = np.array([case.time_error for case in chosen]) * 100
    held = np.mean([case.held for case in chosen]) * 100
    width = np.median([case.high - case.low for case in chosen]) * 100
    true = np.median([case.true for case in chosen]) * 100
    return (
        f"| {name} | {len(chosen)} | {true:.1f} % | {np.median(times):.2f} % | {np.median(gains):.2f} | "
        f"{np.quantile(gains, 0.9):.2f} | {held:.0f} % | {width:.2f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worst", type=int, default=0, help="also print so many of the worst cases")
    given = parser.parse_args()
    found, errors, refused = cases(given.programs, given.seed)
    print(
        "| change | cases | median true gain | error on time, median | error on gain, median (points) | 90 % | "
        "interval holds the truth | its width (points) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in CHANGES:
        chosen = [case for case in found if case.change == name]
        if chosen:
            print(row(name, chosen))
    print(row("all", found))
    right = jobs = 0
    for number in range(given.programs):
        mine = [case for case in found if case.program == number]
        if len(mine) > 1:
            jobs += 1
            best = max(mine, key=lambda case: case.expected)
            right += best.true >= max(case.true for case in mine) - LEAST
    print(f"\nThe change with the greatest true gain is ranked first in {right} of {jobs} programs.")
    print(f"Replay error: median {np.median(errors) * 100:.2f} %, worst {max(errors) * 100:.2f} %; {refused} refused.")
    for case in sorted(found, key=lambda case: -abs(case.true - case.expected))[: given.worst]:
        print(
            f"  {case.program} {case.change}: true {case.true:.4f}, {case.low:.4f} {case.expected:.4f} {case.high:.4f}"
        )


if __name__ == "__main__":
    main()
