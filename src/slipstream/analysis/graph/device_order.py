"""Edges of device work: from its launch, and from what its stream did before."""

import numpy as np
import polars as pl

from slipstream.analysis.graph.edges import LAUNCH, STREAM, Found, found
from slipstream.analysis.graph.nodes import Longs, Nodes


def launches(work: pl.DataFrame, call_node: Longs, position: Longs) -> Found:
    """From launch call to device task.

    A replayed graph has one launch for many tasks: on every stream only its first one hangs on it, the others follow
    in the stream's order.

    Args:
        work: the table ``device_work``.
        call_node: node of each row's launch; -1: unlinked.
        position: node of each row.
    """
    firsts = (
        work.with_row_index("row")
        .drop_nulls("launch_event")
        .sort("ts_ns", "event")
        .unique(["launch_event", "device", "stream"], keep="first", maintain_order=True)["row"]
        .to_numpy()
    )
    return found(LAUNCH, call_node[firsts], position[firsts])


def stream_order(nodes: Nodes, first_device_node: int) -> Found:
    """From each task of a stream to the next one."""
    place = np.arange(first_device_node + 1, len(nodes), dtype=np.int64)
    same = nodes.resource[place] == nodes.resource[place - 1]
    return found(STREAM, place[same] - 1, place[same])
