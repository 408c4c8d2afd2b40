"""Each stream's queue in the window, and how long the host stood before a full one."""

import numpy as np
import polars as pl

from slipstream.analysis.intervals import clip, intersection, length, union
from slipstream.analysis.launch_queue import entries
from slipstream.analysis.window_rows import starting_in_window, window_span
from slipstream.store import Tables

LIMITS = {"cuda": 1_024}
"""Launches that a stream's queue takes, by kind of device: seen in public traces, not promised anywhere."""


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``queue_stats``.

    Raises:
        NotEnoughData: no device work with a known launch.
    """
    depths, waiting = tables["queue_depths"], entries(tables)
    start, end = window_span(tables)
    limit = LIMITS.get(tables.source.device_kind)
    unlinked = starting_in_window(tables, tables["device_work"].filter(pl.col("launch_event").is_null()))
    rows = []
    for (device, stream), mine in depths.group_by("device", "stream", maintain_order=True):
        here = pl.col("device").eq_missing(pl.lit(device, pl.Int32)) & pl.col("stream").eq_missing(
            pl.lit(stream, pl.Int64)
        )
        launches = waiting.filter(here)
        rows.append(
            {
                "device": device,
                "stream": stream,
                "launches": starting_in_window(tables, launches, "since_ns").height,
                "unlinked": unlinked.filter(here).height,
                **_depth(mine, start, end),
                "blocked_ns": None if limit is None else _blocked(mine, launches, limit, start, end),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _depth(depths: pl.DataFrame, start: int, end: int) -> dict[str, float | int | None]:
    """Mean, greatest and empty share of a stream's queue from start to end."""
    depth = np.insert(depths["depth"].to_numpy(), 0, 0)
    borders = np.clip(depths["ts_ns"].to_numpy(), start, end)
    spans = np.append(borders, end) - np.insert(borders, 0, start)
    whole = end - start
    return {
        "mean_depth": float(depth @ spans) / whole if whole else None,
        "max_depth": int(depth[spans > 0].max(initial=0)),
        "empty_share": float(spans[depth == 0].sum()) / whole if whole else None,
    }


def _blocked(depths: pl.DataFrame, launches: pl.DataFrame, limit: int, start: int, end: int) -> int:
    """How long launch calls of a stream lasted while its queue was full; a call in progress is one of the queue."""
    at = depths["ts_ns"].to_numpy()
    full = (depths["depth"].to_numpy() >= limit)[:-1]
    when_full = union(at[:-1][full], at[1:][full])
    begin = launches["since_ns"].to_numpy()
    calls = union(begin, begin + launches["call_ns"].to_numpy())
    return length(clip(intersection(when_full, calls), start, end))
