"""``slipstream run``: record a job that runs unchanged, and diagnose it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from typer.core import TyperCommand, TyperOption

from slipstream.capture.job import STEPS, JobSpec, Watch
from slipstream.cli.output import Format
from slipstream.model import BadInput


class TargetCommand(TyperCommand):
    """A command whose own options end where the script, or ``-m module``, begins."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Shield everything from the target on: it is the script's, whatever it looks like."""
        with_value = {
            name for param in self.params if isinstance(param, TyperOption) and not param.is_flag for name in param.opts
        }
        place = 0
        while place < len(args) and args[place] != "--":
            if args[place].startswith("-m") or not args[place].startswith("-"):
                args = [*args[:place], "--", *args[place:]]
                break
            place += 2 if args[place] in with_value else 1
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("run", cls=TargetCommand, options_metavar="[OPTIONS]")(run)


def run(
    target: Annotated[
        list[str],
        typer.Argument(
            help="script.py ARGS... or -m module ARGS...; whatever follows the target is the job's own.",
            metavar="TARGET",
        ),
    ],
    steps: Annotated[int, typer.Option("--steps", help="Steps to record.", min=1, metavar="N")] = STEPS,
    warmup: Annotated[
        int | None,
        typer.Option("--warmup", help="Steps to let pass first; without it until they are steady.", min=0, metavar="N"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Run folder; without it a new one in slipstream-runs.", metavar="FOLDER"),
    ] = None,
    tuned: Annotated[
        Path | None,
        typer.Option("--with", help="Apply the treatments that slipstream tune wrote down.", metavar="FILE"),
    ] = None,
    format: Format = "text",
    no_places: Annotated[
        bool, typer.Option("--no-places", help="Leave out the one step that is traced line by line.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Record again and again, on slow-downs, and when FOLDER/record-now is touched."),
    ] = False,
    max_overhead: Annotated[
        str, typer.Option("--max-overhead", help="With --watch: what all windows may cost on average.", metavar="SHARE")
    ] = "1%",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the folder is written all the same.")
    ] = False,
) -> None:
    """Run a training script unchanged, record a few steady steps and say what holds it back.

    Standard output stays the script's; the diagnosis goes to standard error and, as JSON, to findings.json in
    the run folder. Ends exactly as the script did; 2 only if it could not be started.

    \b
    Examples:
      slipstream run train.py --epochs 1
      slipstream run --steps 12 -o runs/first -m my_package.train --lr 3e-4
      slipstream run --watch --max-overhead 0.5% train.py
    """
    from slipstream.cli.running import run_job

    job = job_of(target, output, warmup=warmup, steps=steps, places=not no_places)
    if tuned is not None:
        from slipstream.tuning.tuned import read_tuned, with_treatments

        job = with_treatments(job, read_tuned(tuned))
    if watch:
        job = msgspec.structs.replace(job, watch=Watch(max_overhead=share_of(max_overhead)))
    run_job(job, format, quiet)


def share_of(text: str) -> float:
    """A share like ``1%`` or ``0.01``.

    Raises:
        BadInput: it is none, or nothing could ever be recorded.
    """
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise BadInput(f"--max-overhead {text} is no share of the time: 1% or 0.01")
    return value


def job_of(
    target: Sequence[str],
    output: Path | None = None,
    *,
    warmup: int | None = None,
    steps: int = STEPS,
    places: bool = True,
) -> JobSpec:
    """The job that a command line names.

    Args:
        target: script and arguments, or ``-m``, module and arguments; Python also takes ``-mmodule``.
        output: run folder; None: a new one.
        warmup: steps before the window; None: until step times are steady.
        steps: steps to record.
        places: whether one further step is traced line by line.
    Raises:
        BadInput: the module has no name.
    """
    first, *rest = target
    is_module = first.startswith("-m")
    if is_module:
        first, *rest = [first[2:], *rest] if len(first) > 2 else rest or [""]
    if not first:
        raise BadInput("-m needs the name of a module: slipstream run -m my_package.train")
    return JobSpec(
        target=first,
        is_module=is_module,
        argv=tuple(rest),
        output=output,
        warmup=warmup,
        steps=steps,
        places=places,
    )
