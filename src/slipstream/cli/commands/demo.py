"""``slipstream demo``: the whole loop on a training job that comes along."""

import importlib.resources
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipstream.cli.commands.run import TargetCommand, job_of
from slipstream.cli.output import Format, emit, style_of
from slipstream.model import MissingDependency

if TYPE_CHECKING:
    from slipstream.capture import JobSpec

_NEEDS = {"torch": "torch", "transformers": "transformers tokenizers"}


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("demo", cls=TargetCommand)(demo)


def demo(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Arguments of the job, after --; -- --help tells them.", metavar="[ARGS]..."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Run folder; without it a new one in slipstream-runs.", metavar="FOLDER"),
    ] = None,
    no_tune: Annotated[bool, typer.Option("--no-tune", help="Record and diagnose only: a minute.")] = False,
    format: Format = "text",
) -> None:
    """Record and diagnose the bundled BERT training job, then try the fix of its padding.

    It trains a small model from scratch on text that comes along; nothing is downloaded. Ten minutes on two cores,
    nearly all of them for the tuning: two dozen fresh processes that take turns.

    \b
    Example:
      slipstream demo
    """
    for module, packages in _NEEDS.items():
        if importlib.util.find_spec(module) is None:
            raise MissingDependency(f"the demo trains with {module}, which is not installed: pip install {packages}")
    from slipstream.cli.running import record_job

    with importlib.resources.as_file(importlib.resources.files("slipstream.demo") / "train_bert.py") as script:
        job = job_of([str(script), *(arguments or ())], output)
        status = record_job(job, format, quiet=False)
        if status == 0 and not no_tune:
            _tune(job, format)
    if status:
        from slipstream.capture import end_like

        end_like(status)


def _tune(job: "JobSpec", format: str) -> None:
    """The short protocol for one treatment: what a verdict needs at least."""
    from slipstream.cli.tuning import tune_job
    from slipstream.reports import render
    from slipstream.tuning.registry import choices_of
    from slipstream.tuning.search import Wishes, short_effort

    print("\nslipstream: tuning it by the short protocol, trim_padding alone", file=sys.stderr, flush=True)
    wishes = Wishes(only=choices_of("trim_padding"))
    result = tune_job(job, wishes, short_effort(), None, Path("tuned.toml"), record=False)
    emit(render(result, format, style_of(None)), None)
