"""Does the check of numerics reject what trains wrongly, and accept what trains the same?

    python benchmarks/numerics.py            # all three models, minutes
    python benchmarks/numerics.py mlp

Prints the table of docs/numerics.md.
"""

import sys
import tempfile
from pathlib import Path

from numerics_job import DOES_NOT_APPLY, WRONG

from slipstream.capture.job import Choice, JobSpec
from slipstream.tuning import Checked, Variant, check_variants, look_around, treatment_of

JOB = str(Path(__file__).with_name("numerics_job.py"))
RIGHT = {
    "mlp": ("fused_optimizer", "foreach"),
    "bert": ("fused_optimizer", "foreach", "trim_padding"),
    "conv": ("fused_optimizer", "foreach", "channels_last"),
}


def treated(kind: str, name: str) -> Variant:
    """A job with a treatment that trains the same."""
    choice = Choice(name="fused_optimizer", options={"form": name}) if name == "foreach" else Choice(name=name)
    return Variant(
        name=name,
        job=JobSpec(target=JOB, argv=(kind,), treatments=(choice,)),
        dropout=not treatment_of(choice).changes_random_stream,
    )


def check_kind(kind: str) -> tuple[Checked, ...]:
    """All variants of one model."""
    variants = [
        Variant(name=wrong, job=JobSpec(target=JOB, argv=(kind, "--wrong", wrong)))
        for wrong in WRONG
        if wrong not in DOES_NOT_APPLY[kind]
    ]
    variants += [treated(kind, name) for name in RIGHT[kind]]
    with tempfile.TemporaryDirectory() as folder:
        return check_variants(
            JobSpec(target=JOB, argv=(kind,)),
            variants,
            Path(folder, "numerics"),
            look_around(),
            lambda now: print(f"\r{kind}: {now:70}", end="", file=sys.stderr),
        )


def main() -> None:
    """Print the table."""
    print("| job | variant | should be | is | by |\n|---|---|---|---|---|")
    wrong_answers = 0
    for kind in sys.argv[1:] or RIGHT:
        for checked in check_kind(kind):
            wanted = "differs" if checked.arm in WRONG else "same"
            wrong_answers += checked.compared.sameness != wanted
            reason = checked.compared.reasons[0] if checked.compared.reasons else ""
            what = WRONG.get(checked.arm, checked.arm)
            print(f"| {kind} | {what} | {wanted} | {checked.compared.sameness} | {reason} |", flush=True)
    print(f"\n{wrong_answers} wrong answers", file=sys.stderr)
    sys.exit(wrong_answers > 0)


if __name__ == "__main__":
    main()
