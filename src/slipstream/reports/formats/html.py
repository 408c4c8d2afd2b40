"""One self-contained page: nothing is fetched, it opens from disk."""

import functools
import importlib.resources
import json
from collections.abc import Sequence
from statistics import median_low
from typing import Any

import jinja2

from slipstream.model import Difference, Finding, NotEnoughData, Tuning
from slipstream.reports import changes
from slipstream.reports.account import (
    FINDINGS,
    breakdown,
    breakdown_notes,
    facts_line,
    finding_lines,
    gain_note,
    grouped,
    head,
    issue_lines,
    next_steps,
    nothing_found,
)
from slipstream.reports.documents import Page, Rows, Style
from slipstream.reports.html.charts import figures
from slipstream.reports.html.tables import grids
from slipstream.reports.html.timeline import timeline
from slipstream.reports.names import last_part
from slipstream.reports.ranks import ONE_IN_FULL, costliest, counted, overview
from slipstream.reports.tuning import sentences, tuning_rows
from slipstream.reports.units import duration, percent
from slipstream.reports.wording import (
    GRADE,
    device_word,
    inferred_parts,
    label,
    on_device,
    verdict,
)
from slipstream.store import Report

_TITLES = {
    "steps": "Steps over time",
    "timeline": "One step",
    "modules": "Module map",
    "memory": "Memory in use",
    "roofline": "Roofline: ops against what the device can do",
}
_DESCRIBED = {
    "steps": "Length of every step. Steps that stick out are worth a look of their own.",
    "timeline": "Scroll to zoom, drag to move, double-click to see all of it; + and - and the arrow keys do the same.",
    "modules": "Click a module to look inside. Areas are times of the window, forward and backward.",
    "memory": "Memory in use as the allocator tells it.",
    "roofline": "Larger dots take more time; further to the upper left means nearer to a peak.",
}


def diagnosis(reports: Sequence[Report], style: Style, change: Difference | None = None) -> str:
    """The page of one recording; of several ranks an overview and the one with the costliest finding.

    Args:
        reports: one per rank.
        style: not looked at.
        change: what changed since an earlier recording; a section of its own.
    """
    shown = costliest(reports)
    step = timeline(shown)
    charts = figures(shown, step)
    context = {
        "ranks": overview(reports) if len(reports) > 1 else None,
        "counted": counted(reports) if len(reports) > 1 else "",
        "one_in_full": ONE_IN_FULL,
        "path": shown.diagnosis.source.path,
        "verdict": verdict(shown),
        "facts": head(shown),
        "tiles": _tiles(shown),
        "findings": [_card(finding, shown) for finding in shown.diagnosis.findings[:FINDINGS]],
        "more_findings": [_card(finding, shown) for finding in shown.diagnosis.findings[FINDINGS:]],
        "gain_note": gain_note(shown.diagnosis.findings),
        "breakdown": _breakdown(shown),
        "breakdown_notes": breakdown_notes(shown),
        "step_word": "Where the step goes" if shown.diagnosis.steps else "Where the recorded time goes",
        "charts": [{"id": name, "title": _TITLES[name], "about": _DESCRIBED[name]} for name in charts],
        "timeline_note": f"{step.title}. {step.note}" if step is not None else "",
        "grids": grids(shown),
        "nothing_found": nothing_found(shown),
        "change": None if change is None else _change(change),
        "dismissed": grouped(shown.diagnosis.dismissed),
        "not_checked": grouped(shown.diagnosis.not_checked),
        "grade": shown.diagnosis.integrity.grade,
        "grade_means": GRADE[shown.diagnosis.integrity.grade],
        "issues": issue_lines(shown.diagnosis.integrity),
        "commands": [f"slipstream report {shown.diagnosis.source.path} -o report.html", *next_steps(shown)],
    }
    return _rendered(last_part(shown.diagnosis.source.path), "diagnosis.html", context, charts)


def difference(document: Difference, style: Style) -> str:
    """The page of a comparison."""
    context: dict[str, Any] = {
        "facts": [" · ".join(changes.side(*one)) for one in (("A", document.a), ("B", document.b))]
    }
    context |= _change(document)
    return _rendered("B against A", "plain.html", context)


def _change(document: Difference) -> dict[str, Any]:
    """Verdict, tables and lists of a comparison."""
    tables = {
        "Where the difference comes from, per step": changes.parts(document) if document.parts else None,
        "Ops that changed most, per step": changes.ops(document) if document.parts else None,
        "Greatest single changes": changes.lines(document) if document.parts else None,
    }
    return {
        "verdict": " ".join(filter(None, (changes.headline(document), changes.largest(document)))),
        "sides": [" · ".join(changes.side(*one)) for one in (("A", document.a), ("B", document.b))],
        "tables": {title: table for title, table in tables.items() if table is not None and table.rows},
        "lists": {
            "Other kernels for the same op": changes.kernels(document) if document.parts else [],
            "Ops that one recording alone has": changes.alone(document),
            "What limits this comparison": document.notes,
        },
    }


def tuning(document: Tuning, style: Style) -> str:
    """The page of a tuning."""
    words = sentences(document)
    table = tuning_rows(document)
    context = {
        "verdict": words[0],
        "facts": [" ".join(document.command)],
        "tables": {"Treatments": Rows(kind=table.kind, columns=table.columns, rows=table.rows)},
        "lists": {"How it was measured": words[1:]},
    }
    return _rendered("tuning", "plain.html", context)


def rows(rows: Rows, style: Style) -> str:
    """The page of a table."""
    context: dict[str, Any] = {"verdict": rows.kind, "facts": [], "tables": {"": rows}, "lists": {}}
    return _rendered(rows.kind, "plain.html", context)


def page(page: Page, style: Style) -> str:
    """A page with one heading per section."""
    context = {
        "verdict": page.title,
        "facts": [facts_line(page)],
        "tables": {},
        "lists": {title: [text] for title, text in page.sections.items()},
    }
    return _rendered(page.title, "plain.html", context)


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    """Name, figure and remark of what is to be seen at once."""
    document = report.diagnosis
    window = document.window
    length = max(window.end_ns - window.start_ns, 1)
    busy = "cannot tell" if window.busy_ns is None else percent(window.busy_ns / length)
    what = f"{device_word(report)} busy" if on_device(report) else "main thread inside ops"
    lengths = [step.dur_ns for step in document.steps]
    count = f"median of {len(lengths)}" if len(lengths) > 1 else "the only one recorded"
    mfu, remark = _mfu(report)
    best = next((finding for finding in document.findings if finding.gain is not None), None)
    gain = "none found" if best is None or best.gain is None else f"{percent(best.gain.expected)} less"
    most = "at most, by " if best is not None and best.gain is not None and best.gain.ceiling else "by "
    return [
        ("step", duration(median_low(lengths)), count) if lengths else ("recording", duration(length), "no steps"),
        (what, busy, "of the time looked at"),
        ("model FLOPs utilisation", mfu, remark),
        ("largest gain", gain, most + best.code if best is not None else ""),
    ]


def _mfu(report: Report) -> tuple[str, str]:
    try:
        table = report.tables["mfu"]
    except NotEnoughData as reason:
        return "cannot tell", str(reason)
    row = next((row for row in table.iter_rows(named=True) if str(row["variant"]) == "model_flops"), None)
    if row is None or row["mfu"] is None:
        return "cannot tell", str(row["reason"]) if row is not None and row["reason"] else "no operations are known"
    known = row["known_share"]
    return percent(row["mfu"]), "" if known is None else f"operations of {percent(known)} of kernel time are known"


def _card(finding: Finding, report: Report) -> dict[str, Any]:
    gain = finding.gain
    return {
        "id": finding.id,
        "code": finding.code,
        "title": finding.title,
        "lines": finding_lines(finding, report),
        "gain": None if gain is None else f"{'≤ ' if gain.ceiling else ''}{percent(gain.expected)}",
        "low": 0 if gain is None else max(gain.low, 0),
        "high": 0 if gain is None else min(gain.high, 1),
        "snippet": finding.fix.snippet.rstrip() if finding.fix is not None and finding.fix.snippet else None,
        "assumptions": list(gain.assumptions) if gain is not None else [],
    }


def _breakdown(report: Report) -> list[dict[str, Any]]:
    inferred, host = inferred_parts(report), not on_device(report)
    return [
        {
            "label": label(part.part, host) + (" *" if part.part in inferred else ""),
            "time": duration(part.ns_per_step) if part.ns_per_step is not None else "",
            "share": share,
            "width": round(part.share * 100, 2),
            "good": part.part == "compute",
        }
        for part, share in breakdown(report)
    ]


def _rendered(title: str, template: str, context: dict[str, Any], charts: object = None) -> str:
    folder = importlib.resources.files("slipstream.reports.html")
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            title=title,
            style=(folder / "style.css").read_text(encoding="utf-8"),
            script=(folder / "report.js").read_text(encoding="utf-8"),
            plotly=_plotly() if charts else "",
            data=_safe_json(charts or {}),
        )
        + "\n"
    )


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("slipstream.reports.html", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # takes a while to import

    return str(get_plotlyjs())


def _safe_json(value: object) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
