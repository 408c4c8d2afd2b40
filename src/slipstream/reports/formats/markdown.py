"""Markdown, for pull requests and notes."""

from collections.abc import Iterable, Sequence

from slipstream.model import Difference, Hot, Tuning
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
from slipstream.reports.names import short_name
from slipstream.reports.ranks import counted, overview
from slipstream.reports.tuning import tuning_rows
from slipstream.reports.units import duration, percent
from slipstream.reports.wording import GRADE, device_word, inferred_parts, label, on_device, place, times_of, verdict
from slipstream.store import Report


def diagnosis(reports: Sequence[Report], style: Style) -> str:
    """The same sections as on the terminal; several ranks begin with an overview."""
    blocks: list[str] = []
    if len(reports) > 1:
        blocks += [f"# slipstream: {counted(reports)}", rows(overview(reports), style).rstrip()]
    for report in reports:
        blocks += _one(report)
    return "\n\n".join(blocks) + "\n"


def _one(report: Report) -> list[str]:
    document = report.diagnosis
    blocks = [f"# slipstream: {_code(document.source.path)}", " · ".join(map(_plain, head(report)))]
    blocks.append(f"**{_plain(verdict(report))}**")
    blocks += _breakdown(report)
    blocks += _findings(report)
    blocks += _hot(f"Ops, by {times_of(report)}", document.top_ops)
    blocks += _hot(f"Kernels and copies, by {device_word(report)} time", document.top_kernels)
    for title, silent in (("Looked at, not worth changing", document.dismissed), ("Not checked", document.not_checked)):
        if silent:
            blocks += [f"## {title}", _list(f"{codes}: {_plain(reason)}" for codes, reason in grouped(silent))]
    integrity = document.integrity
    if integrity.grade != "A":
        issues = _list(map(_plain, issue_lines(integrity)))
        blocks += [f"## Data quality: grade {integrity.grade}, {GRADE[integrity.grade]}", issues]
    blocks += ["## Look further", "```\n" + "\n".join(next_steps(report)) + "\n```"]
    return [block for block in blocks if block]


def _breakdown(report: Report) -> list[str]:
    parts = breakdown(report)
    if not parts:
        return []
    inferred, host = inferred_parts(report), not on_device(report)
    lines = ["| part | per step | share |", "|---|---:|---:|"]
    for part, share in parts:
        star = r" \*" if part.part in inferred else ""
        lines.append(f"| {label(part.part, host)}{star} | {duration(part.ns_per_step)} | {share} |")
    notes = [_plain(note) for note in breakdown_notes(report)]
    return ["## Where the time goes", "\n".join(lines), *notes]


def _findings(report: Report) -> list[str]:
    findings = report.diagnosis.findings
    if not findings:
        return ["## Findings", nothing_found(report)]
    blocks = [f"## Findings, {gain_note(findings)}"]
    for number, finding in enumerate(findings[:FINDINGS], 1):
        lines = [f"- {name}: {_plain(text)}" for name, text in finding_lines(finding, report)]
        blocks += [f"### {number}. {finding.code} {_plain(finding.title)}", "\n".join(lines)]
        if finding.fix is not None and finding.fix.snippet:
            blocks.append(f"```python\n{finding.fix.snippet.rstrip()}\n```")
    rest = findings[FINDINGS:]
    if rest:
        blocks.append(_list(f"{finding.code} {_plain(finding.title)}: {cost(finding, report)}" for finding in rest))
    return blocks


def _hot(title: str, hot: Sequence[Hot]) -> list[str]:
    shown = hottest(hot)
    if not shown:
        return []
    lines = [f"## {title}", "", "| name | count | time | share | where |", "|---|---:|---:|---:|---|"]
    for row in shown:
        name, where = _code(short_name(row.name)), _plain(place(row.location, brief=True))
        lines.append(f"| {name} | {row.count:,} | {duration(row.self_ns)} | {percent(row.share)} | {where} |")
    return ["\n".join(lines)]


def difference(document: Difference, style: Style) -> str:
    """The same sections as on the terminal."""
    blocks = ["# slipstream diff: B against A"]
    blocks.append(_list(_plain(" · ".join(changes.side(*one))) for one in (("A", document.a), ("B", document.b))))
    blocks.append(f"**{_plain(' '.join(filter(None, (changes.headline(document), changes.largest(document)))))}**")
    if document.parts:
        tables = {
            "Where the difference comes from, per step": changes.parts(document),
            "Ops that changed most, per step": changes.ops(document),
            "Greatest single changes": changes.lines(document),
        }
        blocks += [f"## {title}\n\n{rows(table, style).rstrip()}" for title, table in tables.items() if table.rows]
    listed = {
        "Other kernels for the same op": changes.kernels(document) if document.parts else [],
        "Ops that one recording alone has": changes.alone(document),
        "What limits this comparison": document.notes,
    }
    blocks += [f"## {title}\n\n{_list(map(_plain, lines))}" for title, lines in listed.items() if lines]
    return "\n\n".join(blocks) + "\n"


def tuning(document: Tuning, style: Style) -> str:
    """The table of treatments, with the conclusion below."""
    return rows(tuning_rows(document), style)


def rows(rows: Rows, style: Style) -> str:
    """A table; bars within cells are escaped."""
    shown = rows.rows[: rows.at_most]
    lines = [
        "| " + " | ".join(rows.columns) + " |",
        "|" + "---|" * len(rows.columns),
        *("| " + " | ".join(_cell(row[column]) for column in rows.columns) + " |" for row in shown),
    ]
    if rows.note:
        lines += ["", rows.note]
    return "\n".join(lines) + "\n"


def page(page: Page, style: Style) -> str:
    """A page with one heading per section."""
    sections = (f"## {title}\n\n{text}" for title, text in page.sections.items())
    return "\n\n".join([f"# {page.title}", facts_line(page), *sections]) + "\n"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _plain(text: str) -> str:
    """Text whose characters mean nothing to Markdown; what stands between two backticks stays code."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2:
        return "".join(_code(part) if place % 2 else _escaped(part) for place, part in enumerate(parts))
    return _escaped("`".join(parts))


def _escaped(text: str) -> str:
    for character in "\\`*_<>|[]":
        text = text.replace(character, "\\" + character)
    return text


def _code(text: str) -> str:
    """Text in code style; a bar would end the cell of a table and a backtick the code."""
    return "`" + text.replace("`", "'").replace("|", "¦") + "`"


def _cell(value: object) -> str:
    return "" if value is None else _plain(str(value))
