"""``slipstream report``: the diagnosis as one page for the browser."""

from pathlib import Path
from typing import Annotated

import typer

from slipstream.cli.output import Recording, Redact, emit
from slipstream.model import BadInput


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("report")(report)


def report(
    path: Recording,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.", metavar="FILE", dir_okay=False)] = Path(
        "report.html"
    ),
    against: Annotated[
        str | None,
        typer.Option("--against", help="Also say what changed since this recording.", metavar="BEFORE"),
    ] = None,
    redact: Redact = False,
) -> None:
    """Write what holds a recorded job back as one HTML page.

    The page needs no network and holds everything it shows: findings, where the time goes, one step to zoom into,
    modules, memory, and tables to sort and search.

    \b
    Examples:
      slipstream report trace.json.gz -o report.html
      slipstream report after.json.gz --against before.json.gz
    """
    from slipstream.cli.diagnosing import diagnoses
    from slipstream.reports import redact as redacted
    from slipstream.reports import render

    if redact and against is not None:
        raise BadInput("--redact does not reach into a comparison yet: leave one of --redact and --against out")
    reports = diagnoses(path)
    shown = tuple(redacted(one) for one in reports) if redact else reports
    if against is None:
        emit(render(shown, "html"), output)
        return
    from slipstream.cli.comparing import comparison

    emit(render(shown, "html", change=comparison(against, path)), output)
