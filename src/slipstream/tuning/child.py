"""A job as a child process of its own: started unchanged, with the parts and treatments that it is to load."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from slipstream.capture.environment import command, job_environment
from slipstream.capture.job import Job, JobSpec
from slipstream.tuning import applying
from slipstream.tuning.environment import Environment
from slipstream.tuning.registry import variables_of

GRACE_SECONDS = 5.0
"""What a job is given to end by itself before it is killed."""
_TOLD_LINES = 12
"""Last lines of standard error that are told of a failure."""


class Child:
    """A job that runs in a process group of its own; its streams go to files in its folder.

    Args:
        job: what to run; its ``treatments`` are applied, its ``environment`` is set.
        folder: made when missing; holds job.json, stdout.txt, stderr.txt and what the parts leave.
        parts: modules whose ``install(job)`` is called after the treatments have been applied.
        environment: what the treatments' variables are computed from; also the variables that the job inherits.
    Raises:
        BadInput: there is no such treatment or setting.
        OSError: the folder cannot be written, or the process not started.
    """

    def __init__(self, job: JobSpec, folder: Path, parts: Sequence[str], environment: Environment) -> None:
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        variables = environment.variables | variables_of(job.treatments, environment)
        wish = Job(
            folder=str(self.folder),
            prefix=sys.prefix,
            parts=(applying.PART, *parts),
            warmup=job.warmup,
            steps=job.steps,
            places=job.places,
            treatments=job.treatments,
        )
        job_file = self.folder / "job.json"
        job_file.write_bytes(msgspec.json.encode(wish))
        with (self.folder / "stdout.txt").open("wb") as out, (self.folder / "stderr.txt").open("wb") as err:
            self._process = subprocess.Popen(
                command(job),
                env=job_environment(variables | job.environment, job_file),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its group."""
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit status (negative: number of a signal), None while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit status, None if it still runs after that time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def pause(self) -> None:
        """Stop it with all its threads and workers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        self._signal(signal.SIGCONT)

    def end(self) -> int:
        """End it, if need be by force, and all that it started; its exit status."""
        if self.poll() is None:
            self.go_on()
            self._signal(signal.SIGTERM)
            self.wait(GRACE_SECONDS)
        self._signal(signal.SIGKILL)  # what it started may have outlived it
        return self._process.wait()

    def last_words(self) -> str:
        """The end of its standard error."""
        text = (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.strip().splitlines()[-_TOLD_LINES:])

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return  # all of the group have ended
        except PermissionError:
            return  # macOS says so of a group whose processes are all zombies
