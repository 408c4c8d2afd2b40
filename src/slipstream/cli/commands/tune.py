"""``slipstream tune``: find treatments that make a job faster, prove them, write them down."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipstream.cli.commands.run import TargetCommand, job_of
from slipstream.cli.output import Format, Output, emit, style_of
from slipstream.model import BadInput

if TYPE_CHECKING:
    from slipstream.reports import Rows


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("tune", cls=TargetCommand, options_metavar="[OPTIONS]")(tune)


def tune(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            help="script.py ARGS... or -m module ARGS...; whatever follows the target is the job's own.",
            metavar="TARGET",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", help="Try these treatments alone.", metavar="NAME[(SETTING=VALUE)][,NAME]"),
    ] = None,
    allow_semantic: Annotated[
        bool, typer.Option("--allow-semantic", help="Try treatments, too, that change what is learnt.")
    ] = False,
    time: Annotated[
        str | None,
        typer.Option("--time", help="Begin nothing new after this long: 90s, 10m, 1.5h.", metavar="TIME"),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Short protocol: fewer steps in each process, wider intervals.")
    ] = False,
    no_recording: Annotated[
        bool, typer.Option("--no-recording", help="Do not record the job first; nothing is forecast.")
    ] = False,
    patch: Annotated[
        bool, typer.Option("--patch", help="Write what is kept as a patch of the script, too: tuned.patch.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the treatments.")] = False,
    tuned: Annotated[
        Path, typer.Option("--tuned", help="File for what is kept.", metavar="FILE", dir_okay=False)
    ] = Path("tuned.toml"),
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="For what is measured; named again, it is gone on with.", metavar="FOLDER"),
    ] = None,
    format: Format = "text",
    output: Output = None,
) -> None:
    """Try what may make a training script faster; keep what is proven faster and computes the same.

    The script runs unchanged, many times, in fresh processes that take turns step by step. A treatment is kept
    if its gain is shown at an error rate of 1 % over all verdicts and if losses, gradients and updates stay within
    what the script's own runs differ by. Exit code 0 whether or not anything is kept.

    \b
    Examples:
      slipstream tune train.py --epochs 1
      slipstream tune --only trim_padding,fused_optimizer --time 20m train.py
      slipstream tune --only "fused_optimizer(form=foreach)" --patch train.py
    """
    from slipstream.reports import render

    if listing:
        emit(render(_listing(), format, style_of(output)), output)
        return
    if not target:
        raise BadInput("name a script, or -m and a module: slipstream tune train.py")
    from slipstream.cli.tuning import seconds, tune_job
    from slipstream.tuning.registry import choices_of
    from slipstream.tuning.search import Effort, Wishes, short_effort

    effort = short_effort(seconds(time)) if short else Effort(seconds=seconds(time))
    wishes = Wishes(only=None if only is None else choices_of(only), allow_semantic=allow_semantic)
    result = tune_job(job_of(target), wishes, effort, folder, tuned, not no_recording, patch)
    emit(render(result, format, style_of(output)), output)


def _listing() -> "Rows":
    from slipstream.reports import Rows
    from slipstream.tuning import all_treatments, look_around

    environment = look_around()
    rows = [
        {
            "treatment": name,
            "does": kind.title,
            "class": kind.fix_class,
            "here": kind().applies_to(environment) or "may be tried",
        }
        for name, kind in all_treatments().items()
    ]
    note = "exact: same results; rounding: same up to rounding; semantic: training learns something else."
    return Rows(kind="treatments", columns=("treatment", "does", "class", "here"), rows=rows, note=note)
