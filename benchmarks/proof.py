"""Does the measurement see differences where there are none, and those that there are?

    python benchmarks/proof.py                 # 20 measurements, about 35 minutes
    python benchmarks/proof.py --measurements 4 --folder /tmp/proof

Every measurement is one that ``slipstream tune`` would make, of three variants of a job: the job, its identical twin,
which is judged like a treatment, and a copy whose steps wait for another 5 % of their own time.
Prints the table of docs/proof.md. Named again, a folder is gone on with.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from slipstream.capture.job import JobSpec
from slipstream.tuning import Arm, Plan, Protocol, Proven, Verdicts, look_around, measure, prove

JOB = str(Path(__file__).with_name("proof_job.py"))
PLANTED = 0.05
# One thread: those of OpenMP fall asleep while a step waits, and waking them would slow it down further.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
SLOWER = "5 % slower"


def measured(model: str, number: int, folder: Path) -> Verdicts:
    """One measurement."""
    slower = JobSpec(target=JOB, argv=(model, "--slower", str(PLANTED)), environment=ONE_THREAD)
    plan = Plan(
        job=JobSpec(target=JOB, argv=(model,), environment=ONE_THREAD),
        arms=(Arm(name=SLOWER, job=slower),),
        protocol=Protocol(seed=1000 * number, warmup_steps=5, rounds=20),
    )

    def tell(now: str) -> None:
        print(f"\r\x1b[2K{model} {number}: {now}"[:100], end="", file=sys.stderr)

    return prove(measure(plan, folder, look_around(), tell))


def percent(share: float | None) -> str:
    """A share for the table."""
    return "-" if share is None else f"{share * 100:.1f}"


def row(model: str, number: int, verdicts: Verdicts) -> str:
    """A line of the table."""
    (slower,) = verdicts.arms
    cells = [f"{model} {number}"]
    for verdict, effect in ((verdicts.noise.verdict, verdicts.noise), (slower.verdict, slower.effect)):
        low, high = (None if ratio is None else ratio - 1 for ratio in (effect.low, effect.high))
        cells += [verdict, f"{percent(low)} to {percent(high)}"]
    cells.append(percent(slower.effect.smallest_detectable))
    return f"| {' | '.join(cells)} | {verdicts.disturbed_rounds} of {verdicts.rounds} |"


def found(one: Proven) -> bool:
    """Whether the planted slow-down was told, or is smaller than what is said to be detectable."""
    least = one.effect.smallest_detectable
    return one.verdict == "slower" or (least is not None and least > PLANTED)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where measurements are kept")
    asked = parser.parse_args()
    print(
        "| job | identical copy | time more, % (99 %) | 5 % slower | time more, % (99 %) "
        "| smallest detectable, % | disturbed turns |\n|---|---|---|---|---|---|---|"
    )
    wrong, missed = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(asked.measurements):
            model = ("mlp", "conv")[number % 2]
            verdicts = measured(model, number, (asked.folder or Path(temporary)) / f"{number:02d}")
            (slower,) = verdicts.arms
            wrong += verdicts.noise.verdict in ("faster", "slower")
            missed += not found(slower)
            print("\r\x1b[2K", end="", file=sys.stderr)
            print(row(model, number, verdicts), flush=True)
    print(
        f"\n{wrong} of {asked.measurements} identical copies were called different; "
        f"{missed} of {asked.measurements} planted slow-downs were missed without warning"
    )
    sys.exit(wrong > 1 or missed > 0)


if __name__ == "__main__":
    main()
