"""What ran at the same time on each device."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from slipstream.analysis.intervals import Intervals, Longs, clip, union
from slipstream.analysis.window_rows import known_device_work, window_span
from slipstream.store import Tables

CLASSES = {"compute": ("kernel", "set"), "communication": ("collective",), "copy": ("copy",)}
"""Classes and the kinds of device work in them."""
NAMES = tuple(
    "+".join(name for bit, name in enumerate(CLASSES) if code >> bit & 1) or "idle" for code in range(1 << len(CLASSES))
)
"""Name of each combination, by the bits of the classes that run."""


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``overlap``: for each device the window first, then its steps in order.

    Raises:
        NotEnoughData: no device work in the recording, or what the device did is not known.
    """
    work = known_device_work(tables)
    start, end = window_span(tables)
    steps = tables["steps"].sort("start_ns").select("number", "start_ns", "dur_ns").rows()
    spans = [(None, start, end), *((number, first, first + dur) for number, first, dur in steps)]
    schema = {"device": pl.Int32, "step": pl.Int64, "overlap": pl.String, "ns": pl.Int64, "share": pl.Float64}
    rows = [
        (device, step, NAMES[code], ns, ns / (last - first) if last > first else None)
        for device, classes in _by_device(work, start, end)
        for step, first, last in spans
        for code, ns in enumerate(_times(classes, first, last).tolist())
        if ns
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _by_device(work: pl.DataFrame, start: int, end: int) -> Iterator[tuple[int | None, list[Intervals]]]:
    """Moments of each class on each device, clipped to the window."""
    for (device,), mine in work.group_by("device", maintain_order=True):
        classes = []
        for kinds in CLASSES.values():
            rows = mine.filter(pl.col("kind").is_in(kinds))
            begin = rows["ts_ns"].to_numpy()
            classes.append(clip(union(begin, begin + rows["dur_ns"].to_numpy()), start, end))
        yield None if device is None else int(str(device)), classes


def _times(classes: list[Intervals], start: int, end: int) -> Longs:
    """Time of each combination of classes from start to end, by its code."""
    clipped = [clip(moments, start, end) for moments in classes]
    borders = np.unique(np.concatenate([[start, end], *(side for one in clipped for side in (one.start, one.end))]))
    code = np.zeros(max(len(borders) - 1, 0), np.int64)
    for bit, one in enumerate(clipped):
        before = np.searchsorted(one.start, borders[:-1], side="right")
        code += (before > np.searchsorted(one.end, borders[:-1], side="right")).astype(np.int64) << bit
    sums = np.zeros(len(NAMES), np.int64)
    np.add.at(sums, code, np.diff(borders).astype(np.int64))
    return sums
