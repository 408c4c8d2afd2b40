"""Starts a job under the capture, waits for it and completes the run folder."""

from collections.abc import Callable

import msgspec

from slipstream.capture.job import JobSpec
from slipstream.store import RunFolder, RunInfo


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a job."""

    folder: RunFolder
    returncode: int
    """Its exit status; negative: number of the signal that it died of."""
    info: RunInfo
    """What ``run.json`` holds; ``outcome`` says what was recorded."""


def launch(job: JobSpec, on_progress: Callable[[str], None] | None = None) -> Outcome:
    """Run a job to its end and record a few of its steps.

    Args:
        job: what to run and what to record of it.
        on_progress: told, in a few words, what the recording is doing whenever that changes.
    Raises:
        CannotStart: the script or module does not exist, or torch is not installed.
    """
    raise NotImplementedError
