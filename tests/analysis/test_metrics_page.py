"""docs/metrics.md defines every figure of the tables that it speaks of."""

import re
from pathlib import Path

import pytest

from slipstream.store import DECLARED

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
IDENTITIES = {"event", "thread", "parent", "root", "python_event", "step", "number", "line", "main_thread"}


@pytest.mark.parametrize(
    "table", ["totals", "window", "step_times", "op_tree", "op_stats", "kernel_stats", "breakdown"]
)
def test_every_figure_is_defined(table: str) -> None:
    defined = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    figures = {column.name for column in DECLARED[table].columns if column.dtype.is_numeric()} - IDENTITIES
    assert figures <= defined
