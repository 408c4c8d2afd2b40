"""``slipstream diff``: what changed between two recordings."""

from typing import Annotated

import typer

from slipstream.cli.output import Format, Output, emit, style_of


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("diff")(diff)


def diff(
    a: Annotated[str, typer.Argument(help="What was: trace file or run folder of one rank.", metavar="A")],
    b: Annotated[str, typer.Argument(help="What is: the same of the other run.", metavar="B")],
    format: Format = "text",
    output: Output = None,
) -> None:
    """Say what changed between two recordings, by step, part, op, module and kernel.

    Steps are compared over all that were recorded: the answer is faster, slower, no difference shown, or
    cannot tell with the reason. Parts add up to the difference of the median steps. Ops are matched by
    module, name and shapes, so that recordings from different devices compare as well. Exit code 0
    whatever the answer, 2 if A or B cannot be used.

    \b
    Examples:
      slipstream diff before.json.gz after.json.gz
      slipstream diff slipstream-runs/monday/ slipstream-runs/tuesday/ --format markdown -o diff.md
    """
    from slipstream.cli.comparing import comparison
    from slipstream.reports import render

    emit(render(comparison(a, b), format, style_of(output)), output)
