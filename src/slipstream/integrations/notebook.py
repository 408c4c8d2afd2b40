"""Notebooks: the cell magic ``%%slipstream``, and results that are shown as text with tables, not as records."""

import functools
import html
import shlex
from collections.abc import Sequence
from typing import Any

from IPython.display import HTML, display

from slipstream.model import Difference, Tuning
from slipstream.reports import render
from slipstream.store import Report


def register(shell: Any) -> None:
    """Add magic and displays to a session.

    Args:
        shell: of IPython.
    """
    shell.register_magic_function(_magic(shell), "cell", "slipstream")
    for kind in (Report, Difference, Tuning):
        for mime, format in (("text/markdown", "markdown"), ("text/plain", "text")):
            formatter = shell.display_formatter.formatters[mime]
            formatter.for_type(kind, functools.partial(_shown, format=format))


def page(report: Report | Sequence[Report] | Difference | Tuning, height: int = 900) -> HTML:
    """The page of ``slipstream report`` inside a notebook; about 5 MB.

    Args:
        report: what is shown.
        height: in pixels.
    """
    text = html.escape(render(report, "html"))
    return HTML(f'<iframe srcdoc="{text}" width="100%" height="{height}" style="border:0" title="slipstream"></iframe>')


def _shown(document: Any, printer: Any = None, cycle: bool = False, *, format: str) -> str | None:
    text = render(document, format)
    if printer is None:
        return text
    printer.text(text)  # the formatter of plain text hands over a printer
    return None


def _magic(shell: Any) -> Any:
    def slipstream(line: str, cell: str) -> None:
        """Record a few training steps of this cell and show what holds them back.

        Usage: ``%%slipstream [STEPS]``; the result is also in the variable ``slipstream_report``.
        """
        from slipstream.api import profile
        from slipstream.capture.job import STEPS
        from slipstream.model import BadInput

        words = shlex.split(line)
        if len(words) > 1 or (words and not words[0].isdigit()):
            raise BadInput("usage: %%slipstream [STEPS]")
        with profile(steps=int(words[0]) if words else STEPS) as recorded:
            result = shell.run_cell(cell)
        if not result.success:
            return
        try:
            report = recorded.report
        except BadInput as reason:
            print(f"slipstream: {reason}")
            return
        shell.user_ns["slipstream_report"] = report
        display(report)

    return slipstream
