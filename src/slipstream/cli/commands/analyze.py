"""``slipstream analyze``: the diagnosis of a recording that is already there."""

from typing import Annotated, Literal

import typer

from slipstream.cli.output import Output, Recording, Redact, emit, style_of
from slipstream.model import BadInput


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("analyze")(analyze)


def analyze(
    path: Recording,
    format: Annotated[
        Literal["text", "json", "markdown", "collapsed"],
        typer.Option("--format", help="How the result is written; collapsed: stacks, for flame graph tools."),
    ] = "text",
    output: Output = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", help="Exit with 1 if one of these rules finds something.", metavar="CODE[,CODE]"),
    ] = None,
    what_if: Annotated[
        str | None,
        typer.Option(
            "--what-if",
            help="Forecast the fixes of these findings, alone and together, instead.",
            metavar="CODE[,CODE]",
        ),
    ] = None,
    redact: Redact = False,
) -> None:
    """Say what holds a recorded job back.

    Reads any trace that torch.profiler exported; PyTorch itself is not needed. Exit code 0 with or without
    findings, 1 if a rule named by --fail-on found something, 2 if PATH cannot be used.

    \b
    Examples:
      slipstream analyze trace.json.gz
      slipstream analyze log/ --format json -o findings.json
      slipstream analyze trace.json.gz --fail-on INP001,SYN001
      slipstream analyze trace.json.gz --what-if INP001,LCH001
      slipstream analyze trace.json.gz --format collapsed -o stacks.txt
    """
    if what_if is not None:
        from slipstream.cli.forecasting import forecast
        from slipstream.reports import render

        emit(render(forecast(path, what_if), format, style_of(output)), output)
        return
    codes = _known(fail_on)
    from slipstream.cli.diagnosing import diagnoses
    from slipstream.reports import redact as redacted
    from slipstream.reports import render

    reports = diagnoses(path)
    shown = tuple(redacted(report) for report in reports) if redact else reports
    emit(render(shown, format, style_of(output)), output)
    found = {finding.code for report in reports for finding in report.diagnosis.findings}
    raise typer.Exit(1 if found & codes else 0)


def _known(fail_on: str | None) -> frozenset[str]:
    """The codes of --fail-on.

    Raises:
        BadInput: one of them is no rule; a gate that never closes must not look like one.
    """
    if fail_on is None:
        return frozenset()
    from slipstream.rules.registry import all_rules

    codes = frozenset(code.strip().upper() for code in fail_on.split(","))
    unknown = sorted(codes - set(all_rules()))
    if unknown:
        names = ", ".join(repr(code) for code in unknown)
        raise BadInput(f"--fail-on names {names}, which is no rule: `slipstream rules` lists all")
    return codes
