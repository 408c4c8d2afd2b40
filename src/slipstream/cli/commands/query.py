"""``slipstream query``: SQL over the tables of a recording."""

from typing import Annotated, Literal

import typer

from slipstream.cli.output import Output, emit, style_of


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("query")(query)


def query(
    path: Annotated[str, typer.Argument(help="As for analyze.", metavar="PATH")],
    sql: Annotated[str, typer.Argument(help="A SELECT over the tables of docs/tables.md.", metavar="SQL")],
    format: Annotated[
        Literal["text", "json", "markdown", "csv"],
        typer.Option("--format", help="How the result is written."),
    ] = "text",
    output: Output = None,
) -> None:
    """Ask a recording with SQL.

    Recorded, measured and derived tables are there; of a directory of ranks every table has a further
    first column, rank. SHOW TABLES lists them.

    \b
    Examples:
      slipstream query trace.json "SELECT cause, SUM(dur_ns) AS ns FROM idle_spans GROUP BY cause"
      slipstream query trace.json "SELECT * FROM kernel_stats" --format csv -o kernels.csv
    """
    from slipstream.cli.sql import answer
    from slipstream.reports import render

    emit(render(answer(path, sql), format, style_of(output)), output)
