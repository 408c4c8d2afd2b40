"""Loads the parts of the capture that a job names, in the job's process, right after ``import torch``."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Protocol, cast

from slipstream.capture.job import Job, read_job
from slipstream.capture.status import Seen, write_record


class Part(Protocol):
    """What every part offers."""

    def install(self, job: Job) -> None:
        """Take effect in this process; ``torch`` has been imported."""


def install_parts(path: str) -> None:
    """Install all parts that a job's file names. A failure is told and leaves the job alone.

    Args:
        path: the job's file.
    """
    job = read_job(path)
    if job.prefix != sys.prefix:
        return  # another interpreter, started by the job: slipstream is not installed for it
    seen = Seen(torch_version=str(sys.modules["torch"].__version__))
    try:
        for name in job.parts:
            cast(Part, importlib.import_module(name)).install(job)
    except Exception:
        seen.failure = f"slipstream could not listen to torch; the job ran without it:\n{traceback.format_exc()}"
    write_record(Path(job.folder) / "torch.json", seen)
