"""What can be shown besides a diagnosis, and how it should look."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from slipstream.model import Difference, Tuning
from slipstream.store import Report

Value = str | int | float | bool | None


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How text for people is laid out; formats for machines ignore it."""

    width: int = 100
    """Columns of the terminal."""
    color: bool = False
    """Whether escape sequences for colours may be used."""


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A plain table; its ``kind`` names it in JSON."""

    kind: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, object]]
    """One mapping per row, by column name; None is a missing value."""
    note: str = ""
    """A sentence for people below the table."""
    wrapped: bool = True
    """Whether people read long text in several lines; else one line per row, with the end of long text cut."""
    at_most: int | None = None
    """Rows that people are shown; None: all of them. Formats for machines always carry all."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A titled text in sections; its ``kind`` names it in JSON."""

    kind: str
    title: str
    facts: Mapping[str, Value]
    sections: Mapping[str, str]


class Renderer(Protocol):
    """One format: a module in ``reports/formats``, named after the format."""

    def diagnosis(self, reports: Sequence[Report], style: Style) -> str:
        """One report, or one per rank, as text that ends with a line break."""

    def difference(self, document: Difference, style: Style) -> str:
        """A comparison as text that ends with a line break."""

    def tuning(self, document: Tuning, style: Style) -> str:
        """What was tried on a job as text that ends with a line break."""

    def rows(self, rows: Rows, style: Style) -> str:
        """A table as text that ends with a line break."""

    def page(self, page: Page, style: Style) -> str:
        """A page as text that ends with a line break."""
