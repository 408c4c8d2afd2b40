"""When the device (on CPU training: the main thread) worked within the window, and on what."""

import numpy as np
import polars as pl

from slipstream.analysis.device_work import analysed_device
from slipstream.analysis.painting import Painted, layer, nothing, outside, paint
from slipstream.store import Tables

LAYERS = {"compute": ("kernel", "set"), "exposed_communication": ("collective",), "exposed_copies": ("copy",)}
"""Parts of busy time and the kinds of device work in them; an earlier part hides later ones."""


def layers_of_window(tables: Tables) -> dict[str, Painted]:
    """Disjoint spans of each part of busy time, clipped to the window; on CPU training there is only compute.

    Where work of one part overlaps, what began first has the time, and its event.

    With several devices in one file it is the one that the window table was made for.
    """
    window = tables.row("window")
    first, last = int(str(window["start_ns"])), int(str(window["end_ns"]))
    if not window["on_device"]:
        rows = tables["ops"].filter(pl.col("thread") == window["main_thread"])
        return {"compute": _clipped(rows, first, last)}
    work = tables["device_work"]
    device = analysed_device(work)
    if device is not None:
        work = work.filter(pl.col("device") == device)
    layers: dict[str, Painted] = {}
    taken = nothing()
    for part, kinds in LAYERS.items():
        mine = _clipped(work.filter(pl.col("kind").is_in(kinds)), first, last)
        layers[part] = outside(mine, taken)
        taken = layer([taken, mine])
    return layers


def _clipped(rows: pl.DataFrame, first: int, last: int) -> Painted:
    start = rows["ts_ns"].to_numpy()
    end = start + rows["dur_ns"].to_numpy()
    event = rows["event"].cast(pl.Int64).to_numpy()
    return paint(np.clip(start, first, last), np.clip(end, first, last), 0, event)


def busy_of_window(tables: Tables) -> Painted:
    """Disjoint spans in which the device (or main thread) worked, clipped to the window."""
    return layer(list(layers_of_window(tables).values()))
