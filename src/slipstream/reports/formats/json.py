"""The JSON contract, for programs."""

from collections.abc import Sequence

import msgspec

from slipstream.model import FORMAT_VERSION, Difference, RanksDiagnosis, Tuning
from slipstream.reports.documents import Page, Rows, Style
from slipstream.store import Report


def diagnosis(reports: Sequence[Report], style: Style) -> str:
    """One diagnosis, or ``kind: "ranks"`` for several."""
    documents = tuple(report.diagnosis for report in reports)
    return _text(documents[0] if len(documents) == 1 else RanksDiagnosis(ranks=documents))


def difference(document: Difference, style: Style) -> str:
    """The document, ``kind: "diff"``."""
    return _text(document)


def tuning(document: Tuning, style: Style) -> str:
    """The document, ``kind: "tuning"``."""
    return _text(document)


def rows(rows: Rows, style: Style) -> str:
    """All rows as objects by column name."""
    return _text(
        {"format_version": FORMAT_VERSION, "kind": rows.kind, "columns": rows.columns, "rows": list(rows.rows)}
    )


def page(page: Page, style: Style) -> str:
    """Facts and sections of a page."""
    return _text({"format_version": FORMAT_VERSION, "kind": page.kind, **page.facts, "sections": page.sections})


def _text(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
