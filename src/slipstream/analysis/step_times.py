"""What the device (or main thread) did in each step of the window."""

import polars as pl

from slipstream.analysis.intervals import covered
from slipstream.analysis.window import work_of_window
from slipstream.model import NotEnoughData
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``step_times``.

    Busy time is what lies between a step's own marks, whichever step launched it.

    Raises:
        NotEnoughData: no steps are marked and none could be inferred.
    """
    steps = tables["steps"].sort("start_ns")
    if not steps.height:
        raise NotEnoughData(
            "no steps in this recording: call profiler.step() after each training step, or record with `slipstream run`"
        )
    work = work_of_window(tables)
    start = steps["start_ns"].to_numpy()
    busy = None if work is None else pl.Series(covered(work, start, start + steps["dur_ns"].to_numpy()))
    return steps.select("number", "start_ns", "dur_ns").with_columns(busy_ns=busy)
