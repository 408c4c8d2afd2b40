"""``slipstream demo``: the whole loop on a training job that comes along."""

import importlib.resources
import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from slipstream.cli.commands.run import TargetCommand, job_of
from slipstream.cli.output import Format
from slipstream.model import MissingDependency

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
    format: Format = "text",
) -> None:
    """Record and diagnose the bundled BERT training job.

    It trains a small model from scratch on text that comes along; nothing is downloaded. Minutes on two cores.

    \b
    Example:
      slipstream demo
    """
    for module, packages in _NEEDS.items():
        if importlib.util.find_spec(module) is None:
            raise MissingDependency(f"the demo trains with {module}, which is not installed: pip install {packages}")
    from slipstream.cli.running import run_job

    with importlib.resources.as_file(importlib.resources.files("slipstream.demo") / "train_bert.py") as script:
        run_job(job_of([str(script), *(arguments or ())], output), format, quiet=False)
