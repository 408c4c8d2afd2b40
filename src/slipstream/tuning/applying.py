"""The part that applies treatments; loaded in the job's process once torch has been imported."""

import traceback
from pathlib import Path

import msgspec

from slipstream.capture import endings
from slipstream.capture.job import Choice, Job
from slipstream.tuning.registry import treatment_of
from slipstream.tuning.treatment import Proof, Treatment

PART = "slipstream.tuning.applying"
"""What a job names to have its treatments applied."""
FILE = "proof.json"


class Proved(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one treatment in the job's process."""

    choice: Choice
    proof: Proof


_applied: list[tuple[Choice, Treatment | None, str]] = []
"""Each treatment of this process, or None with the reason why it could not be installed."""


def install(job: Job) -> None:
    """Apply the job's treatments. One that fails is told in its proof; the job goes on without it."""
    for choice in job.treatments:
        try:
            treatment = treatment_of(choice)
            treatment.install()
        except Exception:
            _applied.append((choice, None, traceback.format_exc()))
        else:
            _applied.append((choice, treatment, ""))
    if _applied:
        endings.before_the_end(lambda how: write_proofs(Path(job.folder)))


def proofs() -> tuple[Proved, ...]:
    """What shows now, in this process, that its treatments have taken effect."""
    return tuple(Proved(choice=choice, proof=_proof(treatment, failure)) for choice, treatment, failure in _applied)


def write_proofs(folder: Path) -> None:
    """Leave the proofs of this process in the job's folder, unless those of another one there show more."""
    found = proofs()
    path = folder / FILE
    if path.exists() and _shown(read_proofs(folder)) > _shown(found):
        return  # this is a process beside the one that trains
    part = path.with_name(FILE + ".part")
    part.write_bytes(msgspec.json.encode(found))
    part.replace(path)


def read_proofs(folder: Path) -> tuple[Proved, ...]:
    """The proofs that a job left.

    Raises:
        OSError: it left none.
    """
    return msgspec.json.decode((folder / FILE).read_bytes(), type=tuple[Proved, ...])


def _shown(found: tuple[Proved, ...]) -> int:
    return sum(one.proof.applied for one in found)


def _proof(treatment: Treatment | None, failure: str) -> Proof:
    if treatment is None:
        return Proof(applied=False, evidence=f"it could not be installed:\n{failure}")
    try:
        return treatment.proof()
    except Exception:
        return Proof(applied=False, evidence=f"its proof failed:\n{traceback.format_exc()}")
