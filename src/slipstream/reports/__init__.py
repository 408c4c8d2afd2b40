"""Documents -> text: a diagnosis, rows of a table or a page, for people and for machines. Computes no figure."""

from slipstream.reports.documents import Page, Rows, Style
from slipstream.reports.redaction import redact
from slipstream.reports.rendering import formats, render

__all__ = ["Page", "Rows", "Style", "formats", "redact", "render"]
