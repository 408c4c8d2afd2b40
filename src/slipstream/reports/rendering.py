"""The one entry to all formats. A format is a module in ``reports/formats``; nothing else registers it."""

import importlib
import pkgutil
from collections.abc import Sequence
from typing import cast

from slipstream.model import BadInput, Difference, Tuning
from slipstream.reports import formats as package
from slipstream.reports.documents import Page, Renderer, Rows, Style
from slipstream.store import Report


def formats() -> tuple[str, ...]:
    """Names of all formats."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.__path__)))


def render(
    document: Report | Sequence[Report] | Difference | Tuning | Rows | Page,
    format: str = "text",
    style: Style | None = None,
    change: Difference | None = None,
) -> str:
    """Turn a document into text.

    Args:
        document: a report, one report per rank, a comparison, a tuning, a table or a page.
        format: text, json, markdown or another of ``formats()``.
        style: layout for people; None: 100 columns without colours.
        change: with reports as html: what changed since an earlier recording, as a section of the page.
    Returns:
        Text that ends with a line break.
    Raises:
        BadInput: no such format, no report to show, or a format that cannot show this document.
    """
    if format not in formats():
        raise BadInput(f"there is no format {format!r}: choose one of {', '.join(formats())}")
    renderer = cast(Renderer, importlib.import_module(f"{package.__name__}.{format}"))
    look = style or Style()
    if isinstance(document, Rows):
        return renderer.rows(document, look)
    if isinstance(document, Difference):
        return renderer.difference(document, look)
    if isinstance(document, Tuning):
        return renderer.tuning(document, look)
    if isinstance(document, Page):
        return renderer.page(document, look)
    reports = (document,) if isinstance(document, Report) else tuple(document)
    if not reports:
        raise BadInput("there is no report to show")
    if change is None:
        return renderer.diagnosis(reports, look)
    if format != "html":
        raise BadInput("only html shows a diagnosis and a comparison together: render each by itself")
    from slipstream.reports.formats import html  # its libraries take a while to import

    return html.diagnosis(reports, look, change)
