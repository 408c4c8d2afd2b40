"""How much of the window the host spent waiting for the device: the most that faster kernels can save."""

import numpy as np
import polars as pl

from slipstream.analysis.painting import outside, paint
from slipstream.rules.scope import Scope
from slipstream.store import Tables

UNHURRIED_NS = 50_000
"""A launch or copy call that takes longer was held up: an unhindered one takes 2 to 20 us, also while recorded."""
HELD_UP = r"(?i)(launch|memcpy|memset|synchronize)"
"""Runtime calls in which a host that is ahead is held up: a full queue, a copy or a wait."""


def host_waits_ns(tables: Tables, scope: Scope) -> int | None:
    """Time in which the host waited for a busy device, and by which the device finished later than the host.

    If kernels were faster than the host can launch them, the step would take as long as the host takes: no
    shorter than the window less this time.

    Args:
        tables: reads runtime, steps and idle_spans.
        scope: a window with a device.
    Returns:
        ns; None when the recording has no rows of the host's runtime calls.
    """
    runtime = tables["runtime"].filter(
        (pl.col("ts_ns") < scope.end_ns) & (pl.col("ts_ns") + pl.col("dur_ns") > scope.start_ns)
    )
    if not runtime.height:
        return None
    held = runtime.filter((pl.col("dur_ns") > UNHURRIED_NS) & pl.col("name").cast(pl.String).str.contains(HELD_UP))
    start = np.clip(held["ts_ns"].to_numpy() + UNHURRIED_NS, scope.start_ns, scope.end_ns)
    end = np.clip(held["ts_ns"].to_numpy() + held["dur_ns"].to_numpy(), scope.start_ns, scope.end_ns)
    idle = tables["idle_spans"].sort("start_ns")
    begin = idle["start_ns"].to_numpy()
    waited = outside(paint(start, end, 0), paint(begin, begin + idle["dur_ns"].to_numpy(), 0)).total_ns
    return waited + max(0, scope.end_ns - _host_end(tables, scope, runtime))


def _host_end(tables: Tables, scope: Scope, runtime: pl.DataFrame) -> int:
    """Where the host was done with the window."""
    steps = tables["steps"].filter(~pl.col("inferred"))
    ends = (steps["start_ns"] + steps["dur_ns"]).filter(steps["start_ns"] < scope.end_ns)
    last = ends.max() if len(ends) else (runtime["ts_ns"] + runtime["dur_ns"]).max()
    return int(str(last))
