"""The lines of a report that every format for people shows: head, findings, reasons for silence."""

import re
from collections.abc import Sequence
from statistics import median_low

from slipstream.model import BreakdownPart, Dismissal, Finding, Hot, Integrity
from slipstream.reports.documents import Page
from slipstream.reports.names import short_name
from slipstream.reports.units import duration, percent, percents
from slipstream.reports.wording import DEVICE, expected, inferred_parts, on_device, place, steps_line
from slipstream.store import Report

FINDINGS = 5
"""Findings that are told in full."""
_FAR = 0.05
"""Share by which mean and median step must differ before a reader would wonder."""
HOT = 5
"""Ops and kernels that are listed."""


def head(report: Report) -> list[str]:
    """What was recorded: device, versions, rank, steps, grade."""
    source, integrity = report.diagnosis.source, report.diagnosis.integrity
    facts = [source.device or DEVICE[source.device_kind].replace("device", "device unknown")]
    if source.torch_version:
        facts.append(f"torch {source.torch_version}")
    if source.rank is not None and (source.world_size or 0) > 1:
        facts.append(f"rank {source.rank} of {source.world_size}")
    return [*facts, steps_line(report), f"data grade {integrity.grade}"]


def finding_lines(finding: Finding, report: Report) -> list[tuple[str, str]]:
    """Label and text of what a finding says below its title."""
    lines = [("costs", cost(finding, report))]
    if finding.gain is not None:
        gain = finding.gain
        what = "step" if gain.unit == "step_time" else "sample"
        lines.append(("gain", f"{what} takes {expected(gain)} less ({percent(gain.low)} to {percent(gain.high)})"))
    elif finding.gain_reason is not None:
        lines.append(("gain", f"cannot tell: {finding.gain_reason}"))
    if finding.location is not None:
        lines.append(("where", place(finding.location)))
    if finding.fix is not None:
        consent = " (changes what is learnt: your decision)" if finding.fix.needs_consent else ""
        lines.append(("do", finding.fix.summary + consent))
        if finding.fix.treatment is not None:
            allowed = " --allow-semantic" if finding.fix.needs_consent else ""
            lines.append(("try", f"slipstream tune --only {finding.fix.treatment}{allowed} SCRIPT"))
    if finding.evidence:
        lines.append(("seen", evidence(finding)))
    lines.append(("more", f"slipstream rules {finding.code}"))
    return lines


def breakdown(report: Report) -> list[tuple[BreakdownPart, str]]:
    """Parts that take any time, with their shares as printed: computing first, then the largest loss."""
    taking = [part for part in report.diagnosis.breakdown if part.share > 0]
    parts = sorted(taking, key=lambda part: (part.part != "compute", -part.share))
    return list(zip(parts, percents([part.share for part in parts]), strict=True))


def breakdown_notes(report: Report) -> list[str]:
    """What must be known to read the breakdown right."""
    parts = {part.part for part, _ in breakdown(report)}
    notes = []
    lengths = [step.dur_ns for step in report.diagnosis.steps]
    whole = sum(part.ns_per_step or 0 for part in report.diagnosis.breakdown)
    if whole and lengths and abs(whole - median_low(lengths)) > _FAR * whole:
        work = ", with work that ends after the last one" if on_device(report) else ""
        notes.append(f"the parts add up to the mean step, {duration(whole)}{work}")
    if parts & inferred_parts(report):
        notes.append("* inferred: no row of the recording confirms the cause")
    if not on_device(report) and "idle_loader" in parts:
        notes.append("ops that the data loader runs on the main thread count as inside ops")
    return notes


def hottest(hot: Sequence[Hot]) -> list[Hot]:
    """The ops or kernels that are listed: the first few that took any time."""
    return [row for row in hot[:HOT] if row.self_ns]


def issue_lines(integrity: Integrity) -> list[str]:
    """What was repaired or doubted, each with how often."""
    return [
        issue.text if f"{issue.count}" in issue.text.replace(",", "") else f"{issue.count:,} × {issue.text}"
        for issue in integrity.issues
    ]


def cost(finding: Finding, report: Report) -> str:
    """What a finding costs: per step where steps are known, and its share of the time looked at."""
    window = report.diagnosis.window
    share = percent(finding.cost_ns / max(window.end_ns - window.start_ns, 1))
    if finding.cost_ns_per_step is None:
        return f"{duration(finding.cost_ns)}, {share} of the recording"
    return f"{duration(finding.cost_ns_per_step)} per step, {share} of it"


def evidence(finding: Finding) -> str:
    """The clearest event that shows a finding, and how many more there are."""
    first = finding.evidence[0]
    note = f", {first.note}" if first.note else ""
    more = len(finding.evidence) - 1
    rest = f"; {more} more in the JSON" if more else ""
    return f"{short_name(first.event, 56)}: {duration(first.dur_ns)} at {duration(first.ts_ns)}{note}{rest}"


def gain_note(findings: Sequence[Finding]) -> str:
    """How findings are ranked, told once."""
    return "ranked by gain" if any(finding.gain is not None for finding in findings) else "ranked by cost"


def grouped(dismissals: Sequence[Dismissal]) -> list[tuple[str, str]]:
    """Codes and reason of rules that stayed quiet; rules with one reason share a line, in order of appearance."""
    codes: dict[str, list[str]] = {}
    for dismissal in dismissals:
        seen = codes.setdefault(dismissal.reason, [])
        if dismissal.code not in seen:
            seen.append(dismissal.code)
    return [(", ".join(seen), reason) for reason, seen in codes.items()]


def next_steps(report: Report) -> list[str]:
    """Commands that tell more about this recording."""
    path = report.diagnosis.source.path
    if re.search(r"[\s'\"$&;()<>|*?]", path):
        path = '"' + path.replace('"', '\\"') + '"'
    table = "kernel_stats" if report.diagnosis.top_kernels else "op_stats"
    return [
        f"slipstream analyze {path} --format json",
        f'slipstream query {path} "SELECT name, count, self_ns FROM {table}"',
    ]


def facts_line(page: Page) -> str:
    """The facts of a page in words; what the title says already, what is false and what is missing are left out."""
    told = {
        name.replace("_", " "): value
        for name, value in page.facts.items()
        if value not in (None, False) and str(value) not in page.title
    }
    return " · ".join(name if value is True else f"{name}: {value}" for name, value in told.items())


def nothing_found(report: Report) -> str:
    """What stands in place of findings where there are none: silence of rules that could not look is no praise."""
    blind = len({one.code for one in report.diagnosis.not_checked})
    if not blind:
        return "None: no rule found anything worth changing."
    looked = len({one.code for one in report.diagnosis.dismissed})
    if not looked and report.diagnosis.integrity.grade in ("D", "E"):
        return f"None could be looked for: the recording lacks what {blind} rules need (see the data quality)."
    return f"None: no rule that could look found anything worth changing; {blind} could not look."
