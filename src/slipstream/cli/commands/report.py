"""``slipstream report``: the diagnosis as one page for the browser."""

from pathlib import Path
from typing import Annotated

import typer

from slipstream.cli.output import Recording, Redact, emit


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("report")(report)


def report(
    path: Recording,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.", metavar="FILE", dir_okay=False)] = Path(
        "report.html"
    ),
    redact: Redact = False,
) -> None:
    """Write what holds a recorded job back as one HTML page.

    The page needs no network and holds everything it shows: findings, where the time goes, one step to zoom into,
    modules, memory, and tables to sort and search.

    \b
    Example:
      slipstream report trace.json.gz -o report.html
    """
    from slipstream.cli.diagnosing import diagnoses
    from slipstream.reports import redact as redacted
    from slipstream.reports import render

    reports = diagnoses(path)
    shown = tuple(redacted(one) for one in reports) if redact else reports
    emit(render(shown, "html"), output)
