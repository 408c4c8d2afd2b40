"""Several ranks side by side."""

from collections.abc import Sequence
from statistics import median_low

from slipstream.reports.documents import Rows
from slipstream.reports.units import duration, percent
from slipstream.reports.wording import label, on_device
from slipstream.store import Report


def overview(reports: Sequence[Report]) -> Rows:
    """One row per rank: its step, what its device did and what it lost most time to."""
    return Rows(
        kind="ranks_overview",
        columns=("rank", "step", "computing", "biggest loss", "costliest finding", "grade"),
        rows=[_row(place, report) for place, report in enumerate(reports)],
    )


def _row(order: int, report: Report) -> dict[str, object]:
    document = report.diagnosis
    rank = document.source.rank
    computing = [part.share for part in document.breakdown if part.part == "compute"]
    lost = [part for part in document.breakdown if part.part != "compute"]
    worst = max(lost, key=lambda part: part.share, default=None)
    first = document.findings[0] if document.findings else None
    return {
        "rank": f"({order})" if rank is None else str(rank),
        "step": duration(median_low(step.dur_ns for step in document.steps)) if document.steps else "no steps",
        "computing": percent(computing[0]) if computing else "cannot tell",
        "biggest loss": f"{label(worst.part, not on_device(report))} {percent(worst.share)}" if worst else "–",
        "costliest finding": f"{first.code} {first.title}" if first else "none",
        "grade": document.integrity.grade,
    }
