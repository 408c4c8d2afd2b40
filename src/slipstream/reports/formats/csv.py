"""Comma-separated values of one table, for spreadsheets."""

import csv
import io
from collections.abc import Sequence

from slipstream.model import BadInput, Difference, Tuning
from slipstream.reports.documents import Page, Rows, Style
from slipstream.reports.tuning import tuning_rows
from slipstream.store import Report

_ONE_TABLE = "csv holds one table and nothing else: choose text, json or markdown"


def diagnosis(reports: Sequence[Report], style: Style) -> str:
    """A diagnosis is not one table."""
    raise BadInput(_ONE_TABLE)


def difference(document: Difference, style: Style) -> str:
    """A comparison is not one table."""
    raise BadInput(_ONE_TABLE)


def tuning(document: Tuning, style: Style) -> str:
    """The table of treatments, with the conclusion below."""
    return rows(tuning_rows(document), style)


def rows(rows: Rows, style: Style) -> str:
    """All rows below a line of column names; a missing value is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows([row[column] for column in rows.columns] for row in rows.rows)
    return text.getvalue()


def page(page: Page, style: Style) -> str:
    """A page is not a table."""
    raise BadInput(_ONE_TABLE)
