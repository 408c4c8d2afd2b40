"""How the job is started: the user's own command with a start-up hook on the module path."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from slipstream.capture.job import JOB_VARIABLE, LAUNCHER_VARIABLE, JobSpec

HOOK_FOLDER = Path(__file__).with_name("hook")

_QUIET_KINETO = "99"
"""Above every level of the profiler's own log, which would speak on the job's standard error."""


def command(job: JobSpec) -> list[str]:
    """The job's command, as the user would have given it to this Python."""
    target = ["-m", job.target] if job.is_module else [job.target]
    return [sys.executable, *interpreter_options(), *target, *job.argv]


def interpreter_options() -> list[str]:
    """Options of this interpreter that the job's gets, too.

    Not -I, -E and -S: they would keep the start-up hook out.
    """
    flags = sys.flags
    options = ["-" + "O" * flags.optimize] if flags.optimize else []
    options += ["-B"] if flags.dont_write_bytecode and "PYTHONDONTWRITEBYTECODE" not in os.environ else []
    options += ["-s"] if flags.no_user_site and not flags.isolated and "PYTHONNOUSERSITE" not in os.environ else []
    options += ["-b"] * flags.bytes_warning
    options += ["-d"] if flags.debug else []
    options += ["-v"] * flags.verbose
    if "PYTHONWARNINGS" not in os.environ:
        options += [part for warning in sys.warnoptions for part in ("-W", warning)]
    for name, value in sys._xoptions.items():
        options += ["-X", name if value is True else f"{name}={value}"]
    return options


def job_environment(environ: Mapping[str, str], job_file: Path) -> dict[str, str]:
    """The job's environment variables.

    Args:
        environ: those of this process.
        job_file: what the start-up hook is to read.
    """
    found = dict(environ)
    behind = environ.get("PYTHONPATH")
    found["PYTHONPATH"] = os.pathsep.join([str(HOOK_FOLDER), *([behind] if behind else [])])
    found[JOB_VARIABLE] = str(job_file)
    found[LAUNCHER_VARIABLE] = str(os.getpid())
    found.setdefault("KINETO_LOG_LEVEL", _QUIET_KINETO)
    return found
