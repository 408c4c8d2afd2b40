"""What recording costs the bundled BERT job, measured side by side.

    python benchmarks/capture_cost.py --rounds 8

Four arms, each run in a process of its own and interleaved (every round runs all arms, in an order that rotates):

- plain: the script alone;
- hooks: under slipstream, with a window that never opens;
- profiler: the script with torch.profiler around the same steps, same flags, no slipstream;
- slipstream: as `slipstream run` does it.

Steps are timed in all arms alike by the training script's own call once per step (its learning-rate function). A
process is the unit of replication: each gives one median step, and ratios to the plain arm of the same round are
summed up by a bootstrap over rounds. Prints one row per figure with a 95 % interval.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slipstream.capture import JobSpec, launch

ARMS = ("plain", "hooks", "profiler", "slipstream")
FIRST, STEPS = 6, 6
"""Window of the arms that record: first step (from 0) and number of steps."""
SETTLED = FIRST + STEPS + 3
"""Steps from here on are outside the window and what follows it."""
NEVER = 10**9

JOB = """
import atexit, json, sys, time
import slipstream.demo.train_bert as job

times, arm, out = [], sys.argv.pop(1), sys.argv.pop(1)
clock = time.perf_counter_ns if sys.argv.pop(1) == "wall" else time.process_time_ns
original = job.warmup_then_decay
first, steps = {first}, {steps}
profiler = None

def timed(step, *others):
    global profiler
    times.append(clock())
    if arm == "profiler" and step == first:
        import torch
        profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True
        )
        profiler.start()
    if arm == "profiler" and step == first + steps:
        profiler.stop()
        profiler.export_chrome_trace(out + ".trace.json.gz")
    return original(step, *others)

job.warmup_then_decay = timed
atexit.register(lambda: json.dump(times, open(out, "w")))
job.main()
"""


def run(arm: str, clock: str, script: Path, out: Path, job_arguments: Sequence[str]) -> dict[str, Any]:
    """Run one arm once; step durations in ns by number, and seconds of the whole process."""
    arguments = (arm, str(out), clock, *job_arguments)
    began = time.perf_counter()
    if arm in ("plain", "profiler"):
        subprocess.run([sys.executable, str(script), *arguments], check=True, stdout=subprocess.DEVNULL)
    else:
        job = JobSpec(
            target=str(script),
            argv=arguments,
            output=out.with_suffix(".run"),
            warmup=NEVER if arm == "hooks" else FIRST,
            steps=STEPS,
        )
        saved = os.dup(1)
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        try:
            outcome = launch(job)
        finally:
            os.dup2(saved, 1)
            os.close(saved)
        assert outcome.returncode == 0, outcome.info.outcome
        if arm == "slipstream":
            assert outcome.info.outcome_code == "complete", outcome.info.outcome
            overhead = outcome.info.options["overhead_ns"]
    steps = np.diff(json.loads(out.read_text()))
    found = {"steps_ns": steps, "seconds": time.perf_counter() - began}
    return found | {"overhead_ns": overhead} if arm == "slipstream" else found


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean of ratios and its 95 % bootstrap interval over rounds."""
    logs = np.log(ratios)
    draws = np.random.default_rng(0).choice(logs, (10_000, len(logs))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))


def main() -> None:
    """Run all rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: CPU time of the process, for a machine that others use too; set OMP_NUM_THREADS=1 with it",
    )
    parser.add_argument("job_arguments", nargs="*", default=["--steps", "60"], help="of train_bert.py, after --")
    args = parser.parse_args()

    rounds: list[dict[str, dict[str, Any]]] = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "timed_job.py")
        script.write_text(JOB.format(first=FIRST, steps=STEPS))
        for number in range(args.rounds):
            order = [ARMS[(place + number) % len(ARMS)] for place in range(len(ARMS))]
            rounds.append(
                {
                    arm: run(arm, args.clock, script, Path(folder, f"{number}-{arm}.json"), args.job_arguments)
                    for arm in order
                }
            )
            medians = {arm: f"{np.median(rounds[-1][arm]['steps_ns'][SETTLED:]) / 1e6:.1f}" for arm in ARMS}
            print(f"round {number + 1}: median step in ms {medians}", file=sys.stderr)

    def compare(title: str, arm: str, part: slice) -> None:
        ratios = [
            float(np.median(one[arm]["steps_ns"][part]) / np.median(one["plain"]["steps_ns"][part])) for one in rounds
        ]
        mean, low, high = interval(ratios)
        print(f"{title:<44} {mean:6.3f}  ({low:.3f} to {high:.3f})")

    print(
        f"{args.rounds} rounds, {' '.join(args.job_arguments)}: {args.clock} time of a step over that of the plain job"
    )
    outside, inside = slice(SETTLED, None), slice(FIRST, FIRST + STEPS - 1)
    compare("hooks, no window", "hooks", outside)
    compare("bare torch.profiler, inside the window", "profiler", inside)
    compare("slipstream, inside the window", "slipstream", inside)
    compare("bare torch.profiler, after the window", "profiler", outside)
    compare("slipstream, after the window", "slipstream", outside)
    once = np.median([one["slipstream"]["overhead_ns"] for one in rounds]) / 1e9
    whole = np.median([one["plain"]["seconds"] for one in rounds])
    print(f"{'slipstream, once: start, stop, write':<44} {once:6.2f} s of {whole:.0f} s")


if __name__ == "__main__":
    main()
