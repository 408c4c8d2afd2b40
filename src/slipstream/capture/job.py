"""What to run and what to record of it: the launcher's wish, and its form on disk that the job's process reads."""

from pathlib import Path

import msgspec

JOB_VARIABLE = "SLIPSTREAM_JOB"
"""Environment variable that leads the start-up hook to the job's file."""
LAUNCHER_VARIABLE = "SLIPSTREAM_LAUNCHER"
"""Process id of the launcher: its direct child must not outlive it."""
STEPS = 6
"""Steps that are recorded unless told otherwise."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A treatment that is to be applied to a job: its name and what it is set to."""

    name: str
    """Module in ``slipstream.tuning.treatments``."""
    options: dict[str, str | int | float | bool] = {}
    """What differs from the treatment's own settings."""

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.name}({given})" if given else self.name


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """How a long training is watched: windows again and again."""

    max_overhead: float = 0.01
    """Share of the job's time that all windows may cost on average, 0..1."""
    keep: int = 5
    """Windows that are kept besides the latest."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job to run under the capture."""

    target: str
    """Path of a script, or name of a module."""
    is_module: bool = False
    """Whether target is run as ``python -m`` does."""
    argv: tuple[str, ...] = ()
    """Arguments of the script."""
    output: Path | None = None
    """Run folder; None: ``slipstream-runs/<UTC time>-<script>`` below the working directory."""
    warmup: int | None = None
    """Steps before the window; None: until step times are steady."""
    steps: int = STEPS
    """Steps to record."""
    places: bool = True
    """Whether one further step is traced line by line, for the places of findings."""
    watch: Watch | None = None
    """None: one window."""
    treatments: tuple[Choice, ...] = ()
    """What is applied to the job; the part that does so has to be among ``parts``."""
    parts: tuple[str, ...] = ()
    """Modules whose ``install(job)`` is called before the recording's."""
    environment: dict[str, str] = {}
    """Environment variables of the job besides this process' own."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What the job's process reads: ``job.json`` in the run folder."""

    folder: str
    """The run folder, absolute."""
    prefix: str
    """``sys.prefix`` of the interpreter that the parts were installed for; another one must not load them."""
    parts: tuple[str, ...]
    """Modules whose ``install(job)`` is called once torch has been imported."""
    warmup: int | None = None
    steps: int = STEPS
    places: bool = True
    watch: Watch | None = None
    treatments: tuple[Choice, ...] = ()


def read_job(path: str | Path) -> Job:
    """Read a job's file.

    Raises:
        OSError: it cannot be read.
        msgspec.ValidationError: it is not what the launcher writes.
    """
    return msgspec.json.decode(Path(path).read_bytes(), type=Job)
