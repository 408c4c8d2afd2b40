"""What identifies an op across recordings: its name, the shapes of its inputs, the path of modules it runs in."""

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.forward_ops import forward_of, is_backward
from slipstream.analysis.nesting import Nesting, nesting_of
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
        # Some versions lay the same JSON out over several lines.
        shapes=ops["input_dims"].str.replace_all(r"\s+", ""),
        modules=_modules(tables, nesting),
        parent=nesting.parent,
        working=working,
    )


def _modules(tables: Tables, nesting: Nesting) -> pl.Series:
    """Path of modules around each op; a backward op, and what is inside it, takes that of its forward op."""
    python, ops = tables["python"], tables["ops"]
    none = pl.Series([None] * ops.height, dtype=pl.String)
    if not python.height:
        return none
    calls = nesting_of(tables.trace, "python")
    paths, at_call = _paths(python, calls)
    if not len(paths):
        return none
    around = calls.innermost(ops["thread"].to_numpy(), ops["ts_ns"].to_numpy())
    own = np.where(around >= 0, np.append(at_call, -1)[around], -1)
    forward = forward_of(tables, ops, ~is_backward(ops))
    linked = np.arange(ops.height)
    below = np.flatnonzero(forward[linked] < 0)
    while len(below):
        linked[below] = nesting.parent[linked[below]]
        below = below[linked[below] >= 0]
        below = below[forward[linked[below]] < 0]
    made = np.where(linked >= 0, np.append(forward, -1)[linked], -1)
    path = np.where((own < 0) & (made >= 0), np.append(own, -1)[made], own)
    return pl.Series(paths, dtype=pl.String).gather(pl.Series(path).replace(-1, None))


def _paths(python: pl.DataFrame, calls: Nesting) -> tuple[list[str], Longs]:
    """Distinct paths of modules, and for every Python call the index of the path it runs in; -1: none."""
    names = python["name"].cast(pl.String)
    is_module = names.str.starts_with("nn.Module: ").to_numpy()
    path_of = np.full(python.height, -1, np.int64)
    known: dict[tuple[int, str], int] = {}
    paths: list[str] = []
    order = np.argsort(calls.depth, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(calls.depth[order])) + 1):
        parent = calls.parent[level]
        path_of[level] = np.where(parent >= 0, path_of[parent], -1)
        for call in level[is_module[level]].tolist():
            key = (int(path_of[call]), names[call].removeprefix("nn.Module: "))
            if key not in known:
                known[key] = len(paths)
                paths.append(key[1] if key[0] < 0 else f"{paths[key[0]]}/{key[1]}")
            path_of[call] = known[key]
    return paths, path_of
