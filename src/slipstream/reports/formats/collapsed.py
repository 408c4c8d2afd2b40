"""Stacks of the window, one a line with its time in µs: what flame graph tools read."""

from collections.abc import Sequence

from slipstream.model import BadInput, Difference, Tuning
from slipstream.reports.documents import Page, Rows, Style
from slipstream.reports.wording import on_device
from slipstream.store import Report

_ONLY_STACKS = "collapsed holds the stacks of a recording and nothing else: choose text, json or markdown"


def diagnosis(reports: Sequence[Report], style: Style) -> str:
    """``frame;frame;op;kernel 123``: time on the device, without one on the host; of several ranks one below the other.

    Raises:
        BadInput: the recording has no stacks.
    """
    lines = []
    for report in reports:
        time = "device_ns" if on_device(report) else "self_ns"
        lines += [
            f"{stack} {round(ns / 1000)}"
            for stack, ns in report.tables["stacks"].select("stack", time).iter_rows()
            if ns >= 500
        ]
    return "".join(f"{line}\n" for line in lines)


def difference(document: Difference, style: Style) -> str:
    """A comparison has no stacks."""
    raise BadInput(_ONLY_STACKS)


def tuning(document: Tuning, style: Style) -> str:
    """A tuning has no stacks."""
    raise BadInput(_ONLY_STACKS)


def rows(rows: Rows, style: Style) -> str:
    """A table has no stacks."""
    raise BadInput(_ONLY_STACKS)


def page(page: Page, style: Style) -> str:
    """A page has no stacks."""
    raise BadInput(_ONLY_STACKS)
