"""Several ranks side by side."""

from collections.abc import Sequence
from statistics import median_low

from slipstream.reports.account import cost
from slipstream.reports.documents import Rows
from slipstream.reports.names import last_part
from slipstream.reports.units import duration, percent
from slipstream.reports.wording import label, on_device
from slipstream.store import Report


def overview(reports: Sequence[Report]) -> Rows:
    """One row per rank: its step, what its device did and what it lost most time to.

    Recordings that do not tell distinct ranks are named by their files.
    """
    ranks = [report.diagnosis.source.rank for report in reports]
    distinct = None not in ranks and len(set(ranks)) == len(ranks)
    return Rows(
        kind="ranks_overview",
        columns=(
            "rank" if distinct else "recording",
            "step",
            "computing",
            "biggest loss",
            "costliest finding",
            "grade",
        ),
        rows=[_row(report) for report in reports],
    )


ONE_IN_FULL = "Below, the one with the costliest finding; name a single file to see another."


def costliest(reports: Sequence[Report]) -> Report:
    """The one with the costliest finding."""
    return max(reports, key=lambda report: max((f.cost_ns for f in report.diagnosis.findings), default=0))


def counted(reports: Sequence[Report]) -> str:
    """How many there are: ``2 ranks``, or ``2 recordings`` where they do not tell distinct ranks."""
    return f"{len(reports)} {overview(reports).columns[0]}s"


def _row(report: Report) -> dict[str, object]:
    document = report.diagnosis
    computing = [part.share for part in document.breakdown if part.part == "compute"]
    lost = [part for part in document.breakdown if part.part != "compute"]
    worst = max(lost, key=lambda part: part.share, default=None)
    first = document.findings[0] if document.findings else None
    return {
        "rank": str(document.source.rank),
        "recording": last_part(document.source.path),
        "step": duration(median_low(step.dur_ns for step in document.steps)) if document.steps else "no steps",
        "computing": percent(computing[0]) if computing else "cannot tell",
        "biggest loss": f"{label(worst.part, not on_device(report))} {percent(worst.share)}" if worst else "–",
        "costliest finding": f"{first.code} {cost(first, report).split(',')[0]}" if first else "none",
        "grade": document.integrity.grade,
    }
