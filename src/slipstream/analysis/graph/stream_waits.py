"""Edges between streams: one waits for an event that was recorded on another."""

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.graph.edges import STREAM_WAIT, Found, found
from slipstream.analysis.graph.nodes import Longs
from slipstream.store import Tables

_WAITS = r"(?i)stream.?wait"


def stream_waits(tables: Tables, position: Longs) -> Found:
    """From the last task launched before an event was recorded to the first one launched after a stream waits for it.

    The two calls are joined by the correlation of the recording call, which the wait names; an event's handle would
    not do, as handles are used again. Only recordings with synchronisation rows (``enable_cuda_sync_events``) tell.

    Args:
        tables: reads syncs, runtime, device_work.
        position: node of each row of ``device_work``.
    """
    waits = tables["syncs"].filter(pl.col("name").cast(pl.String).str.contains(_WAITS))
    waits = waits.drop_nulls(["stream", "correlation", "wait_on_correlation"])
    calls = tables["runtime"].filter(pl.col("correlation").is_not_null()).unique("correlation", keep="first")
    at = calls.select("correlation", call_ns="ts_ns")
    waits = waits.join(at, on="correlation").join(
        at.rename({"call_ns": "recorded_ns", "correlation": "wait_on_correlation"}), on="wait_on_correlation"
    )
    if not waits.height:
        return found(STREAM_WAIT, [], [])
    work = (
        tables["device_work"].with_row_index("row").drop_nulls(["launch_ts_ns", "stream"]).sort("launch_ts_ns", "ts_ns")
    )
    source = _at_border(work, waits["wait_on_stream"], waits["recorded_ns"], before=True)
    target = _at_border(work, waits["stream"], waits["call_ns"], before=False)
    both = (source >= 0) & (target >= 0)
    return found(STREAM_WAIT, position[source[both]], position[target[both]])


def _at_border(work: pl.DataFrame, streams: pl.Series, at_ns: pl.Series, *, before: bool) -> npt.NDArray[np.int64]:
    """Row of the last work of each stream launched before a moment, or of the first launched after it; -1: none."""
    wanted, moments = streams.fill_null(-1).to_numpy(), at_ns.to_numpy()
    answer = np.full(len(wanted), -1, np.int64)
    for stream in np.unique(wanted):
        mine = np.flatnonzero(wanted == stream)
        rows = work.filter(pl.col("stream") == int(stream))
        place = np.searchsorted(rows["launch_ts_ns"].to_numpy(), moments[mine], side="left") - (1 if before else 0)
        there = (place >= 0) & (place < rows.height)
        answer[mine[there]] = rows["row"].to_numpy()[place[there]]
    return answer
