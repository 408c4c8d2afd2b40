"""A training thread that waits for a batch which a thread of the same process (pinning memory) hands over.

Worker processes are in no recording: a wait for them stays a gap of the training thread.
"""

import numpy as np
import polars as pl

from slipstream.analysis.graph.edges import LOADER
from slipstream.analysis.graph.hand_over import segments_at
from slipstream.analysis.graph.host_time import HostTime
from slipstream.analysis.graph.nodes import GAP
from slipstream.analysis.graph.waits import Waits
from slipstream.store import Tables


def batches(tables: Tables, host: HostTime, pairs: list[tuple[int, int]]) -> Waits:
    """Find what ended the wait within each span of a data loader: the last thing another thread did in it.

    Args:
        tables: reads loader_spans.
        host: segments of threads.
        pairs: threads that work for each other otherwise (``hand_over.partners``); they hand over no batches.
    """
    spans = tables["loader_spans"] if tables.has("loader_spans") else pl.DataFrame()
    rows: list[tuple[int, int, int, int]] = []
    if spans.height:
        spans = spans.filter(~pl.col("single_process").fill_null(False))
        trains = {thread for pair in pairs for thread in pair} | set(spans["thread"].to_list())
        helping = ~host.outside & ~np.isin(host.thread, sorted(trains))
        order = np.flatnonzero(helping)
        order = order[np.argsort(host.end[order], kind="stable")]
        begin = spans["start_ns"].to_numpy()
        end = begin + spans["dur_ns"].to_numpy()
        place = np.searchsorted(host.end[order], end, side="right") - 1
        if len(order):
            given = order[np.maximum(place, 0)]
            handed = (place >= 0) & (host.end[given] > begin)
            thread = spans["thread"].to_numpy().astype(np.int64)[handed]
            given, begin = given[handed], begin[handed]
            segment = segments_at(host, thread, host.end[given])
            usable = segment >= 0
            usable[usable] &= host.kind[segment[usable]] == GAP
            since = np.maximum(begin, host.start[segment])
            rows = list(zip(segment[usable], since[usable], host.end[given][usable], given[usable], strict=True))
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    _, once = np.unique(columns[0], return_index=True)
    segment, since, until, given = columns[:, once]
    none = np.full(len(once), -1, np.int64)
    return Waits(
        kind=LOADER, segment=segment, from_ns=since, until_ns=until, work=none, releasing=given, front=none > 0
    )
