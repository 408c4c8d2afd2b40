"""``slipstream doctor``: whether this machine is fit to train and to record."""

import os

import typer

from slipstream.cli.output import Format, emit, style_of


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("doctor")(doctor)


def doctor(format: Format = "text") -> None:
    """Check whether this machine is fit to train and to record.

    Looks at versions, devices, the compiler, threads, debug switches and shared memory.

    Every line is ok, look (something to change) or cannot tell, with the reason. Always exits with 0.

    \b
    Example:
      slipstream doctor
    """
    from slipstream.cli.environment import checks
    from slipstream.cli.progress import progress
    from slipstream.reports import Rows, render

    with progress("asking torch"):
        found = checks(os.environ)
    rows = [{"check": check.name, "state": check.state, "why": check.why} for check in found]
    emit(render(Rows(kind="doctor", columns=("check", "state", "why"), rows=rows), format, style_of(None)), None)
