"""Sequences of kernels that occur again and again on one stream."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from slipstream.analysis.intervals import Longs
from slipstream.analysis.window_rows import starting_in_window
from slipstream.model import NotEnoughData
from slipstream.store import Tables

LENGTHS = (2, 3, 4, 5)
_SCHEMA = {
    "device": pl.Int32,
    "stream": pl.Int64,
    "length": pl.Int32,
    "names": pl.String,
    "count": pl.Int64,
    "kernel_ns": pl.Int64,
    "span_ns": pl.Int64,
    "gap_ns": pl.Int64,
    "share": pl.Float64,
}


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``kernel_sequences``, those with most kernel time first.

    Raises:
        NotEnoughData: no kernels in the recording.
    """
    kernels = tables["device_work"].filter(pl.col("kind").is_in(["kernel", "collective"]))
    if not kernels.height:
        raise NotEnoughData("no kernels in this recording: record with the device's activity (ProfilerActivity.CUDA)")
    kernels = starting_in_window(tables, kernels).sort("ts_ns", "event")
    whole = int(kernels["dur_ns"].sum())
    rows = [
        (device, stream, *row, row[3] / whole if whole else None)
        for (device, stream), mine in kernels.group_by("device", "stream", maintain_order=True)
        for row in _of_stream(mine)
    ]
    found = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return found.sort("kernel_ns", "length", "names", "stream", descending=[True, True, False, False])


def _of_stream(kernels: pl.DataFrame) -> Iterator[tuple[int, str, int, int, int, int]]:
    """Length, names, count, time of kernels, span and gaps of each repeated sequence on one stream."""
    names, name = np.unique(kernels["name"].cast(pl.String).to_numpy(), return_inverse=True)
    start, dur = kernels["ts_ns"].to_numpy(), kernels["dur_ns"].to_numpy()
    sums = np.concatenate([[0], np.cumsum(dur)])
    # Work of one stream may overlap a little (programmatic dependent launch): gaps are what none covers.
    reached = np.maximum.accumulate(start + dur) if len(start) else start
    gap = np.maximum(np.append(start[1:], 0) - reached, 0)
    gaps = np.concatenate([[0], np.cumsum(gap)])
    group = name.astype(np.int64)
    for length in LENGTHS:
        count = len(name) - length + 1
        if count < 2:
            return
        # A sequence is the one that is shorter by one kernel, and the kernel that follows.
        _, group = np.unique(group[:count] * len(names) + name[length - 1 :], return_inverse=True)
        kept = _apart(group.astype(np.int64), length)
        last = kept + length - 1
        sequence = group[kept]
        times = pl.DataFrame(
            {
                "sequence": sequence,
                "first": kept,
                "kernel_ns": sums[last + 1] - sums[kept],
                "span_ns": np.maximum(reached[last], start[kept]) - start[kept],
                "gap_ns": gaps[last] - gaps[kept],
            }
        )
        stats = times.group_by("sequence").agg(
            pl.len().alias("count"), pl.col("first").min(), pl.col("kernel_ns", "span_ns", "gap_ns").sum()
        )
        for _, times_seen, first, *sizes in stats.filter(pl.col("count") > 1).iter_rows():
            yield length, "\n".join(names[name[first : first + length]]), times_seen, *sizes


def _apart(group: Longs, length: int) -> Longs:
    """Positions of the occurrences that are left when, from the front, those that overlap a kept one are dropped.

    Args:
        group: number of the sequence that starts at each position.
        length: of the sequences.
    """
    stride = len(group) + length
    order = np.argsort(group, kind="stable")
    key = group[order] * stride + order
    following = np.searchsorted(key, key + length).tolist()
    kept = []
    at = 0
    while at < len(following):
        kept.append(at)
        at = following[at]
    return order[np.array(kept, np.int64)]
