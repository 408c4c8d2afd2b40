"""``slipstream rules``: what slipstream looks for."""

from typing import TYPE_CHECKING, Annotated

import typer

from slipstream.cli.output import Format, emit, style_of
from slipstream.model import BadInput

if TYPE_CHECKING:
    from slipstream.reports import Page, Rows
    from slipstream.rules.rule import Rule


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("rules")(rules)


def rules(
    code: Annotated[
        str | None, typer.Argument(help="Explain this rule; without it all are listed.", metavar="[CODE]")
    ] = None,
    format: Format = "text",
) -> None:
    """List the rules, or explain one.

    \b
    Examples:
      slipstream rules
      slipstream rules INP001
    """
    from slipstream.reports import render
    from slipstream.rules.registry import all_rules

    known = all_rules()
    if code is None:
        emit(render(_listing(known), format, style_of(None)), None)
        return
    if code.upper() not in known:
        raise BadInput(f"there is no rule {code!r}: `slipstream rules` lists all")
    emit(render(_page(known[code.upper()]), format, style_of(None)), None)


def _listing(known: "dict[str, Rule]") -> "Rows":
    from slipstream.reports import Rows

    rows = [
        {"code": code, "problem": rule.name, "fix": rule.fix_class, "status": rule.status}
        for code, rule in known.items()
    ]
    note = "exact: same results; rounding: same up to rounding; semantic: training learns something else."
    return Rows(kind="rules", columns=("code", "problem", "fix", "status"), rows=rows, note=note)


def _page(rule: "Rule") -> "Page":
    from slipstream.reports import Page

    return Page(
        kind="rule",
        title=f"{rule.code} {rule.name}",
        facts={
            "code": rule.code,
            "name": rule.name,
            "fix_class": rule.fix_class,
            "changes_random_stream": rule.changes_random_stream,
            "status": rule.status,
            "reads": ", ".join(rule.needs),
        },
        sections=rule.sections(),
    )
