"""Without a device: when the main thread stood still until an exchange with other processes was done.

Libraries such as gloo exchange on threads of their own and mark it there (``gloo:all_reduce``). The thread that waits
for the result marks nothing: it is outside ops, inside a call such as ``backward``.
"""

import numpy as np
import polars as pl

from slipstream.analysis.painting import Painted, inside, paint
from slipstream.store import Tables

EXCHANGE = r"^(gloo|mpi|ucc):"
WAKE_UP_NS = 500_000
"""A thread that waits goes on this soon after the exchange is done; whoever goes on later did something else."""


def exchange_waits(tables: Tables, idle: Painted, main_thread: int) -> Painted:
    """The pieces of idle gaps of the main thread in which an exchange ran whose end the gap waited for.

    Args:
        tables: reads annotations.
        idle: gaps of the main thread between ops.
        main_thread: the thread.
    """
    marks = tables["annotations"].filter(
        ~pl.col("on_device") & (pl.col("thread") != main_thread) & pl.col("name").cast(pl.String).str.contains(EXCHANGE)
    )
    start = marks["ts_ns"].to_numpy()
    end = start + marks["dur_ns"].to_numpy()
    done = np.sort(end)
    last = np.searchsorted(done, idle.end, side="right") - 1
    ended = done[np.maximum(last, 0)] if len(done) else np.zeros(len(idle), np.int64)
    awaited = (last >= 0) & (ended > idle.start) & (idle.end - ended <= WAKE_UP_NS)
    spans = paint(start, end, 0, marks["event"].cast(pl.Int64).to_numpy())
    return inside(spans, idle.take(awaited))[0]
