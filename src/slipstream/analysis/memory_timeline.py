"""Memory in use over time, with the op and phase behind every change."""

import numpy as np
import polars as pl

from slipstream.analysis.allocations import allocation_changes
from slipstream.analysis.nesting import nesting_of
from slipstream.analysis.op_modules import inherited
from slipstream.analysis.phase_spans import phase_at
from slipstream.analysis.step_marks import step_at
from slipstream.store import Tables

HELPERS = ("aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::resize_")
"""Ops that allocate for the op around them, which is the one to name."""


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``memory_timeline``, in order of time.

    Raises:
        NotEnoughData: memory was not recorded.
    """
    rows = allocation_changes(tables)
    start = rows["ts_ns"].to_numpy()
    nesting = nesting_of(tables.trace, "ops")
    names = tables["ops"]["name"].cast(pl.String)
    place = np.arange(len(names))
    helps = names.is_in(HELPERS).to_numpy()
    caller = inherited(np.where(helps, -1, place), nesting)
    user = np.append(np.where(caller >= 0, caller, place), -1)
    around = user[nesting.innermost(rows["thread"].fill_null(-1).to_numpy(), start)]
    op = names.gather(pl.Series(around).replace(-1, None))
    described = rows.with_columns(op=op, phase=phase_at(tables, start), step=step_at(tables, start))
    return described.drop("place", "freed_place", "thread", "address")
