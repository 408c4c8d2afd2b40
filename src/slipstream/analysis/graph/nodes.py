"""Tasks and what carries them out: host threads and device streams, each of which does one task at a time."""

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

Longs = npt.NDArray[np.int64]

NodeKind = Literal["gap", "op", "runtime", "sync", "kernel", "collective", "copy", "set"]
NODE_KINDS: tuple[NodeKind, ...] = ("gap", "op", "runtime", "sync", "kernel", "collective", "copy", "set")
"""``Nodes.kind`` is a position in this. gap: a thread's time inside no leaf, which is Python or framework code; sync:
a call that waits for the device, less the wait."""
GAP, OP, RUNTIME, SYNC, KERNEL = range(5)


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A thread (``thread`` is given) or a stream (``device`` and ``stream`` are)."""

    thread: int | None = None
    device: int | None = None
    stream: int | None = None

    @property
    def name(self) -> str:
        """``thread 3`` or ``device 0 stream 7``."""
        if self.thread is not None:
            return f"thread {self.thread}"
        return (
            f"device {'?' if self.device is None else self.device} stream {'?' if self.stream is None else self.stream}"
        )


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks; arrays of one length, threads before streams, in order of time on each resource.

    On a thread the tasks and the waits between them cover all time from its first to its last row. A wait is no task:
    it is the time until an edge from elsewhere is satisfied.
    """

    kind: npt.NDArray[np.uint8]
    resource: npt.NDArray[np.int32]
    """index into the resources of the graph"""
    start_ns: Longs
    dur_ns: Longs
    event: Longs
    """event of the row; of a gap the innermost call, op or range around it; -1: none"""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def end_ns(self) -> Longs:
        """Ends."""
        return self.start_ns + self.dur_ns


def device_nodes(work: pl.DataFrame, first_resource: int) -> tuple[Nodes, tuple[Resource, ...], Longs]:
    """Tasks of the device.

    Args:
        work: the table ``device_work``.
        first_resource: number of the first stream.
    Returns:
        The tasks, their streams, and the index in the tasks of every row of ``work``.
    """
    device = work["device"].fill_null(-1).to_numpy().astype(np.int64)
    stream = work["stream"].fill_null(-1).to_numpy().astype(np.int64)
    begin = work["ts_ns"].to_numpy().astype(np.int64)
    order = np.lexsort((work["event"].to_numpy(), begin, stream, device))
    ordered = np.stack([device[order], stream[order]])
    new = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))[: len(order)]
    which = np.cumsum(new) - 1
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    kinds = work["kind"].cast(pl.String).replace_strict({name: n for n, name in enumerate(NODE_KINDS)})
    nodes = Nodes(
        kind=kinds.to_numpy().astype(np.uint8)[order],
        resource=(which + first_resource).astype(np.int32),
        start_ns=begin[order],
        dur_ns=work["dur_ns"].to_numpy().astype(np.int64)[order],
        event=work["event"].to_numpy().astype(np.int64)[order],
    )
    streams = tuple(
        Resource(device=None if d < 0 else int(d), stream=None if s == -1 else int(s))
        for d, s in ordered[:, new].T.tolist()
    )
    return nodes, streams, position


def joined(first: Nodes, second: Nodes) -> Nodes:
    """Tasks of both, those of the first in front."""
    both = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in Nodes.__struct_fields__}
    return Nodes(**both)
