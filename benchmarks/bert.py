"""How much faster does slipstream make the training of the bundled BERT, by itself?

    python benchmarks/bert.py                        # about an hour on two cores
    python benchmarks/bert.py --folder /tmp/bert     # named again, it is gone on with

Two tunings, each with all treatments that do not change what is learnt, as ``slipstream tune`` would do them: of the
job as it is (sentences padded to 128 tokens), and of the job with its batches padded to their longest sequence, which
a careful author would have done already. Prints the tables of docs/guide.md and ends with 1 where the lower end of
the 95 % interval of the first speed-up is below 1.18.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from slipstream.capture.job import Choice, JobSpec
from slipstream.model import Tuning
from slipstream.reports import render
from slipstream.tuning import Protocol, all_treatments, look_around
from slipstream.tuning.registry import choices_of
from slipstream.tuning.search import Effort, Wishes, tune

JOB = str(Path(__file__).parents[1] / "src" / "slipstream" / "demo" / "train_bert.py")
PROMISED = 1.18
STEPS = "400"
EFFORT = Effort(
    screening=Protocol(repetitions=2, warmup_steps=6, rounds=8),
    confirmation=Protocol(repetitions=8, warmup_steps=6, rounds=15),
    numerics_steps=20,
)
DYNAMIC = Choice(name="trim_padding")
BASELINES = {"padded to 128 tokens": (), "padded to the longest of the batch": (DYNAMIC,)}


def tuned(name: str, folder: Path, only: str | None) -> Tuning:
    """A tuning of one baseline; its treatments are part of every arm.

    Args:
        name: of the baseline.
        folder: for what is measured.
        only: treatments to try, as ``slipstream tune --only`` takes them; None: all.
    """
    job = JobSpec(target=JOB, argv=("--steps", STEPS), treatments=BASELINES[name])
    environment = look_around()
    choices = choices_of(only or ",".join(all_treatments()))
    wishes = Wishes(only=tuple(choice for choice in choices if choice not in BASELINES[name]))

    def tell(now: str) -> None:
        print(f"\r\x1b[2K{name}: {now}"[:110], end="", file=sys.stderr)

    result, _ = tune(job, folder, environment, wishes, EFFORT, None, tell)
    print("\r\x1b[2K", end="", file=sys.stderr)
    return result


def speed_up(result: Tuning) -> tuple[float, float, float] | None:
    """How often the time of the job goes into the old one, with its 95 % interval; None: nothing is kept."""
    kept = next((one.measured for one in result.tried if one.name == result.kept), None)
    if kept is None or kept.gain is None or kept.low_95 is None or kept.high_95 is None:
        return None
    return 1 / (1 - kept.gain), 1 / (1 - kept.low_95), 1 / (1 - kept.high_95)


def main() -> None:
    """Tune both and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where measurements are kept")
    parser.add_argument("--baseline", choices=["0", "1"], help="one of the two")
    parser.add_argument("--only", help="treatments to try, instead of all")
    asked = parser.parse_args()
    least = float("inf")
    with tempfile.TemporaryDirectory() as temporary:
        for number, name in enumerate(BASELINES):
            if asked.baseline not in (None, str(number)):
                continue
            result = tuned(name, (asked.folder or Path(temporary)) / str(number), asked.only)
            print(f"Baseline: {name}\n")
            print(render(result, "markdown"))
            found = speed_up(result)
            if found is None:
                print("Speed-up: none is shown.\n", flush=True)
            else:
                middle, low, high = found
                print(f"Speed-up: {middle:.2f} x (95 %: {low:.2f} to {high:.2f}).\n", flush=True)
            if number == 0:
                least = 0.0 if found is None else found[1]
    sys.exit(least < PROMISED)


if __name__ == "__main__":
    main()
