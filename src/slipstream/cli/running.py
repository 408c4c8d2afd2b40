"""Runs a job under the capture and tells what came out, for every command that does so."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from slipstream.capture import JobSpec, Outcome, end_like, launch
from slipstream.cli.diagnosing import diagnoses
from slipstream.cli.job_summary import step_facts
from slipstream.cli.output import style_for
from slipstream.model import SlipstreamError
from slipstream.reports import render

COMPLETE = "complete"
"""Outcome of a recording that needs no words; every other is told with what the steps of the job tell."""
_RANK_NAMES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def run_job(job: JobSpec, format: str, quiet: bool) -> NoReturn:
    """Run a job, tell what holds it back, and end as it did; see ``record_job``."""
    end_like(record_job(job, format, quiet))


def record_job(job: JobSpec, format: str, quiet: bool) -> int:
    """Run a job and tell what holds it back.

    Args:
        job: what to run and what to record of it.
        format: how the diagnosis is written to standard error.
        quiet: tell nothing; the run folder is written all the same.
    Returns:
        Its exit status; negative: number of the signal that it died of.
    Raises:
        CannotStart: the job could not be started at all.
    """
    speaks = not quiet and speaks_for_all(os.environ)
    outcome = launch(job, on_progress=say if speaks else None)
    try:
        _tell(outcome, format, speaks)
    except Exception:
        # The job has its own ending, and a launcher waits for that one: a failure of ours is shown, no more.
        sys.excepthook(*sys.exc_info())
    sys.stderr.flush()
    return outcome.returncode


def speaks_for_all(environ: Mapping[str, str]) -> bool:
    """Whether this process is the one that prints: of several that a launcher started only rank 0 does."""
    ranks = [environ[name] for name in _RANK_NAMES if name in environ]
    return not ranks or ranks[0] == "0"


def _tell(outcome: Outcome, format: str, speaks: bool) -> None:
    folder, info = outcome.folder, outcome.info
    lines = [] if info.outcome_code == COMPLETE else [info.outcome or "nothing is known of the recording"]
    if recorded(folder.root):
        try:
            reports = diagnoses(str(folder.root))
        except SlipstreamError as error:
            lines.append(f"the recording cannot be analysed: {error}")
        else:
            folder.findings_path.write_text(render(reports, "json"), encoding="utf-8")
            folder.report_path.write_text(render(reports, "html"), encoding="utf-8")
            if speaks:
                sys.stderr.write("\n" + render(reports, format, style_for(sys.stderr)))
    if lines:
        lines += [facts for facts in (step_facts(folder),) if facts]
    if speaks:
        for line in (*lines, f"run folder: {folder.root}"):
            say(line)


def recorded(root: Path) -> bool:
    """Whether a run folder holds the window of any rank."""
    return any(root.glob("rank*/trace.json*"))


def say(line: str) -> None:
    """Tell something on standard error, at once."""
    print(f"slipstream: {line}", file=sys.stderr, flush=True)
