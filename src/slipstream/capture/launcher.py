"""Starts a job under the capture, waits for it and completes the run folder."""

import importlib.machinery
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

from slipstream import __version__
from slipstream.capture.environment import command, job_environment
from slipstream.capture.job import Job, JobSpec
from slipstream.capture.machine import host_facts, library_names
from slipstream.capture.outcomes import completed
from slipstream.capture.progress import Progress
from slipstream.capture.signals import run_to_the_end
from slipstream.model import CannotStart
from slipstream.store import RunFolder, RunInfo

PARTS = ("slipstream.capture.recording",)
RUNS = "slipstream-runs"


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
        CannotStart: the script or module does not exist, torch is not installed, or the run folder cannot be used.
    """
    check_target(job)
    folder = _prepared_folder(job)
    info = RunInfo(
        command=[*(["-m"] if job.is_module else []), job.target, *job.argv],
        working_directory=str(Path.cwd()),
        started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        slipstream_version=__version__,
        python_version=".".join(map(str, sys.version_info[:3])),
        host=host_facts(),
        options={"steps": job.steps, "warmup": job.warmup, "places": job.places},
    )
    job_file = _write_job(job, folder)
    leads = _rank_of_launcher() == 0
    if leads:
        folder.write_info(info)
    progress = Progress(folder, on_progress)
    returncode = run_to_the_end(command(job), job_environment(os.environ | job.environment, job_file), progress.look)
    progress.look()
    info = completed(info, folder, returncode)
    info.packages = library_names(without=info.options.pop("user_package", None))  # type: ignore[arg-type]
    if leads:
        folder.write_info(info)
    return Outcome(folder=folder, returncode=returncode, info=info)


def check_target(job: JobSpec) -> None:
    """Whether the job can be started; what only the job itself can find out is left to it.

    Raises:
        CannotStart: the script or module does not exist, or torch is not installed.
    """
    if job.is_module:
        top = job.target.partition(".")[0]
        path = [str(Path.cwd()), *sys.path]
        if top not in sys.builtin_module_names and importlib.machinery.PathFinder.find_spec(top, path) is None:
            raise CannotStart(
                f"no module named {top} is found from {Path.cwd()}: check the name, or the folder it is run from"
            )
    elif not Path(job.target).exists():
        raise CannotStart(f"there is no script {job.target} (working directory: {Path.cwd()})")
    if importlib.machinery.PathFinder.find_spec("torch", sys.path) is None:
        raise CannotStart(
            f"PyTorch is not installed for {sys.executable}: install it there (pip install torch), or install "
            "slipstream into the environment that the job is trained with"
        )


def _prepared_folder(job: JobSpec) -> RunFolder:
    root = (job.output or default_folder(job)).absolute()
    shared = "RANK" in os.environ or "SLURM_PROCID" in os.environ
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not shared and any(root.iterdir()):
            raise CannotStart(f"{root} is not empty: name another run folder, or remove it")
    except OSError as error:
        raise CannotStart(f"the run folder {root} cannot be made: {error}") from error
    return RunFolder(root)


def default_folder(job: JobSpec) -> Path:
    """``slipstream-runs/<UTC time>-<script>``; the same for all ranks that one launcher started."""
    name = job.target if job.is_module else Path(job.target).stem
    if "SLURM_PROCID" in os.environ:
        started = f"slurm-{os.environ.get('SLURM_JOB_ID', '0')}.{os.environ.get('SLURM_STEP_ID', '0')}"
        return Path(RUNS, f"{started}-{name}")
    if "RANK" in os.environ:
        moment = datetime.fromtimestamp(psutil.Process(os.getppid()).create_time(), UTC)
        return Path(RUNS, f"{moment:%Y%m%dT%H%M%SZ}-{name}")
    return new_folder(RUNS, name)


def new_folder(below: str, name: str) -> Path:
    """``<below>/<UTC time>-<name>``, with a number where that is taken."""
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"
    names = (stem if count == 1 else f"{stem}-{count}" for count in range(1, 1000))
    return next(path for path in (Path(below, name) for name in names) if not path.exists())


def _rank_of_launcher() -> int:
    """Rank of this launcher where several were started side by side, else 0."""
    text = os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or "0"
    return int(text) if text.isdigit() else 0


def _write_job(job: JobSpec, folder: RunFolder) -> Path:
    path = folder.root / "job.json"
    wish = Job(
        folder=str(folder.root),
        prefix=sys.prefix,
        parts=(*job.parts, *PARTS),
        warmup=job.warmup,
        steps=job.steps,
        places=job.places,
        watch=job.watch,
        treatments=job.treatments,
    )
    part = path.with_name(f"job.json.{os.getpid()}")
    part.write_bytes(msgspec.json.encode(wish))
    part.replace(path)
    return path
