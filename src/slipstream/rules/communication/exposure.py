"""Each collective of the window with what is known of it, and how much of it no computation hides."""

import numpy as np
import polars as pl

from slipstream.analysis.painting import Painted, outside, paint
from slipstream.rules.places import PLACE
from slipstream.rules.scope import Scope
from slipstream.rules.window_ops import window_ops
from slipstream.store import Tables

HOST_CALLS = r"^(gloo|mpi|ucc):|^c10d::"
"""Ops and marks of collectives on the host."""
DTYPE_BYTES = {
    "Bool": 1,
    "Byte": 1,
    "Char": 1,
    "Half": 2,
    "BFloat16": 2,
    "Int": 4,
    "Float": 4,
    "Long": 8,
    "Double": 8,
}
"""Bytes of one element, by the type's name in the recording's metadata."""


def collectives_of_window(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Collectives on the device that ran in the window, in order of time.

    Returns:
        event, name, ts_ns, dur_ns, launch_ts_ns, op_event, operation and size_bytes (null where not told),
        ``exposed_ns`` (beside no kernel, overlapping collectives counted once), ``root`` (outermost op around the
        launch) and the place.
    """
    work = tables["device_work"].filter(
        (pl.col("ts_ns") < scope.end_ns) & (pl.col("ts_ns") + pl.col("dur_ns") > scope.start_ns)
    )
    rows = work.filter(pl.col("kind") == "collective").sort("ts_ns")
    bare = outside(
        _spans(rows, scope, np.arange(rows.height)), _spans(work.filter(pl.col("kind").is_in(["kernel", "set"])), scope)
    )
    exposed = np.zeros(rows.height, np.int64)
    np.add.at(exposed, bare.event, bare.end - bare.start)
    told = tables["collectives"].select(
        "event",
        pl.col("operation").cast(pl.String),
        size_bytes=pl.max_horizontal("in_elements", "out_elements")
        * pl.col("dtype").cast(pl.String).replace_strict(DTYPE_BYTES, default=None, return_dtype=pl.Int64),
    )
    ops = window_ops(tables, scope)
    places = ops.select(pl.col("event").alias("op_event"), "root", *PLACE)
    return (
        rows.select("event", pl.col("name").cast(pl.String), "ts_ns", "dur_ns", "launch_ts_ns", "op_event")
        .with_columns(exposed_ns=pl.Series(exposed, dtype=pl.Int64))
        .join(told, on="event", how="left")
        .join(places, on="op_event", how="left")
        .sort("ts_ns")
    )


def _spans(rows: pl.DataFrame, scope: Scope, event: np.ndarray | None = None) -> Painted:
    start = rows["ts_ns"].to_numpy()
    end = np.clip(start + rows["dur_ns"].to_numpy(), scope.start_ns, scope.end_ns)
    start = np.clip(start, scope.start_ns, scope.end_ns)
    return paint(start, end, 0) if event is None else paint(start, end, 0, event)
