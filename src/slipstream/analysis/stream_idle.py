"""Busy and idle time of each stream and device."""

import numpy as np
import polars as pl

from slipstream.analysis.intervals import clip, length, union
from slipstream.analysis.window_rows import known_device_work, window_span
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``stream_idle``: each device, then its streams.

    Raises:
        NotEnoughData: no device work in the recording, or what the device did is not known.
    """
    work = known_device_work(tables)
    start, end = window_span(tables)
    rows = []
    for (device,), on_device in work.sort("device", nulls_last=True).group_by("device", maintain_order=True):
        rows.append({"device": device, "stream": None, "scope": "device", **_times(on_device, start, end)})
        for (stream,), mine in on_device.sort("stream", nulls_last=True).group_by("stream", maintain_order=True):
            rows.append({"device": device, "stream": stream, "scope": "stream", **_times(mine, start, end)})
    return pl.DataFrame(rows, infer_schema_length=None)


def _times(work: pl.DataFrame, start: int, end: int) -> dict[str, int | float | None]:
    begin = work["ts_ns"].to_numpy()
    stop = begin + work["dur_ns"].to_numpy()
    busy = clip(union(begin, stop), start, end)
    # Idle stretches run from the end of one busy stretch to the start of the next, from border to border.
    gaps = np.append(busy.start, end) - np.insert(busy.end, 0, start)
    idle = end - start - length(busy)
    return {
        "count": int(((stop >= start) & (begin < end)).sum()),
        "sum_ns": int(np.maximum(np.minimum(stop, end) - np.maximum(begin, start), 0).sum()),
        "busy_ns": length(busy),
        "idle_ns": idle,
        "idle_share": idle / (end - start) if end > start else None,
        "before_first_ns": int(gaps[0]),
        "after_last_ns": int(gaps[-1]) if len(busy) else 0,
        "gaps": int((gaps > 0).sum()),
        "longest_idle_ns": int(gaps.max()),
    }
