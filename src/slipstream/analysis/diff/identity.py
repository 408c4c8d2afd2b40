"""What identifies an op across recordings: its name, the shapes of its inputs, the path of modules it runs in."""

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.nesting import nesting_of
from slipstream.analysis.op_shapes import compact
from slipstream.store import Tables

Longs = npt.NDArray[np.int64]


class Ops(msgspec.Struct, frozen=True, kw_only=True):
    """The ops of a recording; arrays and series of one length."""

    names: pl.Series
    shapes: pl.Series
    """input shapes as JSON; null: not recorded"""
    modules: pl.Series
    """path of modules; null: none known"""
    parent: Longs
    working: npt.NDArray[np.bool_]
    """whether any of the compared time belongs to it or to ops inside it"""

    def index_of(self, events: pl.Series, event: pl.Series) -> Longs:
        """Index of the op with each event; -1: none."""
        place = pl.DataFrame({"event": events}).with_row_index("place")
        wanted = event.cast(events.dtype).to_frame("event")
        found = wanted.join(place, on="event", how="left", maintain_order="left")["place"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy()


def ops_of(tables: Tables) -> Ops:
    """Names, shapes and modules of all ops."""
    ops = tables["ops"]
    nesting = nesting_of(tables.trace, "ops")
    on_device = bool(tables.row("window")["on_device"])
    tree = tables["op_tree"]
    working = tree["device_total_ns"].to_numpy() > 0 if on_device else np.ones(ops.height, bool)
    return Ops(
        names=ops["name"].cast(pl.String),
        shapes=compact(ops["input_dims"]),
        modules=_modules(tables),
        parent=nesting.parent,
        working=working,
    )


def _modules(tables: Tables) -> pl.Series:
    """Path of modules of each op."""
    if not tables.has("op_modules"):
        return pl.Series([None] * tables["ops"].height, dtype=pl.String)
    events = tables["ops"].select("event")
    known = tables["op_modules"].select("event", pl.col("module").cast(pl.String))
    return events.join(known, on="event", how="left", maintain_order="left")["module"]
