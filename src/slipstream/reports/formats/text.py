"""The terminal: what people read first, laid out for the width they have."""

import io
from collections.abc import Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from slipstream.model import Difference, Dismissal, Hot, Tuning
from slipstream.reports import changes
from slipstream.reports.account import (
    FINDINGS,
    breakdown,
    breakdown_notes,
    cost,
    facts_line,
    finding_lines,
    gain_note,
    grouped,
    head,
    hottest,
    issue_lines,
    next_steps,
    nothing_found,
)
from slipstream.reports.documents import Page, Rows, Style
from slipstream.reports.names import short_name, shortened
from slipstream.reports.ranks import ONE_IN_FULL, costliest, counted, overview
from slipstream.reports.tuning import tuning_rows
from slipstream.reports.units import bar, duration, percent
from slipstream.reports.wording import GRADE, device_word, inferred_parts, label, on_device, place, times_of, verdict
from slipstream.store import Report

_IN_FULL = 2
"""Ranks up to which each is shown in full; of more, only the one with the costliest finding."""
_NARROWEST = 12
"""Characters that a column of text keeps however narrow the terminal."""
_SNIPPET_LINES = 4
_STATES = {"ok": "green", "look": "yellow", "cannot tell": "cyan"}


def diagnosis(reports: Sequence[Report], style: Style) -> str:
    """The report of one recording; several ranks begin with an overview."""
    console = _console(style)
    if len(reports) > 1:
        console.print(Text(counted(reports), style="bold"), _grid(overview(reports), len(reports)), "", sep="\n")
    shown = _in_full(reports)
    if len(shown) < len(reports):
        _note(console, ONE_IN_FULL)
        console.print()
    for report in shown:
        _one(console, report)
    return _text(console)


def _in_full(reports: Sequence[Report]) -> Sequence[Report]:
    if len(reports) <= _IN_FULL:
        return reports
    return [costliest(reports)]


def _one(console: Console, report: Report) -> None:
    document = report.diagnosis
    console.print(Text.assemble(("slipstream ", "bold"), document.source.path), soft_wrap=True)
    for line in _packed(head(report), console.width):
        console.print(Text(line, style="dim"))
    console.print()
    console.print(Text(verdict(report), style="bold"))
    _breakdown(console, report)
    _findings(console, report)
    _hot(console, f"Ops, by {times_of(report)}", document.top_ops)
    _hot(console, f"Kernels and copies, by {device_word(report)} time", document.top_kernels)
    _silent(console, "Looked at, not worth changing", document.dismissed)
    _silent(console, "Not checked", document.not_checked)
    _quality(console, report)
    _heading(console, "Look further")
    for line in next_steps(report):
        # A command that is to be copied must not be broken into lines.
        console.print(Text("  " + line), soft_wrap=True)
    console.print()


def _packed(facts: Sequence[str], width: int) -> list[str]:
    """Facts in as few lines as they fit in, none of them broken."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(fact) + 3 <= width:
            lines[-1] += f" · {fact}"
        else:
            lines.append(fact)
    return lines


def _breakdown(console: Console, report: Report) -> None:
    parts = breakdown(report)
    if not parts:
        return
    per_step = any(part.ns_per_step is not None for part, _ in parts)
    inferred, host = inferred_parts(report), not on_device(report)
    _heading(console, "Where the step goes" if per_step else "Where the recorded time goes")
    grid = _columns("left", "left", "right", "right")
    width = max(12, min(44, console.width - 56))
    for part, share in parts:
        star = " *" if part.part in inferred else ""
        blocks = Text(bar(part.share, width).ljust(width), style="green" if part.part == "compute" else "yellow")
        grid.add_row(label(part.part, host) + star, blocks, duration(part.ns_per_step) if per_step else "", share)
    console.print(Padding(grid, (0, 0, 0, 2)))
    for note in breakdown_notes(report):
        _note(console, note)


def _findings(console: Console, report: Report) -> None:
    findings = report.diagnosis.findings
    if not findings:
        _heading(console, "Findings")
        console.print(f"  {nothing_found(report)}")
        return
    _heading(console, f"Findings, {gain_note(findings)}")
    for number, finding in enumerate(findings[:FINDINGS], 1):
        title = _columns("left", None, gap=1)
        title.add_row(
            Text(str(number), style="bold"), Text.assemble((finding.code, "bold yellow"), f" {finding.title}")
        )
        console.print(Padding(title, (0 if number == 1 else 1, 0, 0, 2)))
        grid = _columns("left", None)
        for name, text in finding_lines(finding, report):
            grid.add_row(Text(name, style="dim"), Text(text))
            snippet = finding.fix.snippet if finding.fix is not None and name == "do" else None
            if snippet and _short(snippet, console.width - 11):
                grid.add_row("", Text(snippet.strip(), style="green"))
        console.print(Padding(grid, (0, 0, 0, 4)))
    for finding in findings[FINDINGS:]:
        line = Text(f"also {finding.code} {finding.title}: {cost(finding, report)}")
        console.print(Padding(line, (1 if finding is findings[FINDINGS] else 0, 0, 0, 2)))


def _short(snippet: str, width: int) -> bool:
    """Whether code is worth showing here: few lines, none of which would be wrapped."""
    lines = snippet.strip().splitlines()
    return len(lines) <= _SNIPPET_LINES and all(len(line) <= width for line in lines)


def _hot(console: Console, title: str, hot: Sequence[Hot]) -> None:
    shown = hottest(hot)
    if not shown:
        return
    _heading(console, f"{title}, with the share of it")
    # The longest place must fit beside its name; both share what the figures leave.
    places = [place(row.location, brief=True) for row in shown]
    room = console.width - 34
    width = max(24, room - max(map(len, places)) - 2) if any(places) else room
    grid = _columns("left", "right", "right", "right", None)
    for row, where in zip(shown, places, strict=True):
        name = short_name(row.name, min(width, 60))
        figures = f"{row.count:,} ×", duration(row.self_ns), percent(row.share)
        grid.add_row(Text(name), *figures, Text(where, style="dim"))
    console.print(Padding(grid, (0, 0, 0, 2)))


def _columns(*justify: Literal["left", "right"] | None, gap: int = 2) -> Table:
    """Columns without lines; None: text that is wrapped, the others never are."""
    grid = Table.grid(padding=(0, gap))
    for side in justify:
        grid.add_column(justify=side or "left", no_wrap=side is not None, overflow="fold")
    return grid


def _silent(console: Console, title: str, silent: Sequence[Dismissal]) -> None:
    if not silent:
        return
    _heading(console, title)
    for codes, reason in grouped(silent):
        _hanging(console, codes, reason)


def _quality(console: Console, report: Report) -> None:
    integrity = report.diagnosis.integrity
    if integrity.grade == "A":
        return
    _heading(console, f"Data quality: grade {integrity.grade}, {GRADE[integrity.grade]}")
    for line in issue_lines(integrity):
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def difference(document: Difference, style: Style) -> str:
    """Both recordings, what became of the step, and where the difference comes from."""
    console = _console(style)
    console.print(Text("slipstream diff, B against A", style="bold"))
    for name, compared in (("A", document.a), ("B", document.b)):
        for number, line in enumerate(_packed(changes.side(name, compared), console.width - 3)):
            # A path that is to be copied must not be broken into lines.
            console.print(Padding(Text(line, style="dim"), (0, 0, 0, 3 if number else 0)), soft_wrap=not number)
    console.print()
    console.print(Text(" ".join(filter(None, (changes.headline(document), changes.largest(document)))), style="bold"))
    if document.parts:
        _table(console, "Where the difference comes from, per step", changes.parts(document))
        _table(console, "Ops that changed most, per step", changes.ops(document))
        _listed(console, "Other kernels for the same op", changes.kernels(document))
        _table(console, "Greatest single changes", changes.lines(document))
    _listed(console, "Ops that one recording alone has", changes.alone(document))
    _listed(console, "What limits this comparison", document.notes)
    return _text(console)


def _table(console: Console, title: str, rows: Rows) -> None:
    if rows.rows:
        _heading(console, title)
        console.print(Padding(_grid(rows, len(rows.rows)), (0, 0, 0, 2)))
        if rows.note:
            _note(console, rows.note)


def _listed(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        _heading(console, title)
        for line in lines:
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def tuning(document: Tuning, style: Style) -> str:
    """The table of treatments, with the conclusion below."""
    return rows(tuning_rows(document), style)


def rows(rows: Rows, style: Style) -> str:
    """Columns aligned, numbers to the right; the state of a check in its colour."""
    shown = len(rows.rows) if rows.at_most is None else min(rows.at_most, len(rows.rows))
    console = _console(style)
    if rows.wrapped:
        console.print(_grid(rows, shown))
    else:
        for line in _lines(rows, shown, style.width):
            console.print(Text(line), soft_wrap=True)
    if shown < len(rows.rows):
        console.print(f"{len(rows.rows) - shown:,} more rows: other formats hold all of them")
    if rows.note:
        console.print(Text(rows.note))
    return _text(console)


def _grid(rows: Rows, shown: int) -> RenderableType:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in rows.columns:
        number = any(isinstance(row[column], int | float) for row in rows.rows[:shown])
        grid.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    for row in rows.rows[:shown]:
        grid.add_row(*(_cell(row[column]) for column in rows.columns))
    return grid


def _lines(rows: Rows, shown: int, width: int) -> list[str]:
    """One line per row. Only text gives way to the width: a figure without its end would be another figure."""
    cells = [[_cell(row[column]).plain for column in rows.columns] for row in rows.rows[:shown]]
    numbers = [any(isinstance(row[column], int | float) for row in rows.rows[:shown]) for column in rows.columns]
    widths = [max(map(len, column)) for column in zip(rows.columns, *cells, strict=True)]
    texts = [place for place, number in enumerate(numbers) if not number]
    while sum(widths) + 2 * (len(widths) - 1) > width and any(widths[place] > _NARROWEST for place in texts):
        widths[max(texts, key=widths.__getitem__)] -= 1
    return [
        "  ".join(
            text.rjust(room) if number else shortened(text, room).ljust(room)
            for text, room, number in zip(line, widths, numbers, strict=True)
        )
        for line in [list(rows.columns), *cells]
    ]


def _cell(value: object) -> Text:
    if isinstance(value, float):
        # Never in powers of ten where a plain number can be read.
        text = f"{value:.6g}" if abs(value) < 1_000_000 else f"{value:.0f}"
    else:
        text = "" if value is None else str(value)
    return Text(text, style=_STATES.get(text, ""))


def page(page: Page, style: Style) -> str:
    """A title, its facts and its sections."""
    console = _console(style)
    console.print(Text(page.title, style="bold"))
    console.print(Text(facts_line(page), style="dim"))
    for title, text in page.sections.items():
        _heading(console, title)
        console.print(Padding(Text(_reflowed(text)), (0, 0, 0, 2)))
    return _text(console)


def _reflowed(text: str) -> str:
    """Paragraphs as one line each, to be wrapped anew; lists, tables and indented code keep their lines."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        paragraph if any(line[:1] in " -*|" for line in paragraph.splitlines()) else " ".join(paragraph.split())
        for paragraph in paragraphs
    )


def _console(style: Style) -> Console:
    return Console(
        file=io.StringIO(),
        width=style.width,
        force_terminal=style.color,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold cyan"))


def _note(console: Console, text: str) -> None:
    console.print(Padding(Text(text, style="dim"), (0, 0, 0, 2)))


def _hanging(console: Console, label: str, text: str) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", max_width=24)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label), Text(text))
    console.print(Padding(grid, (0, 0, 0, 2)))


def _text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    lines = (line.rstrip() for line in console.file.getvalue().splitlines())
    return "\n".join(lines).rstrip("\n") + "\n"
