"""The time of host threads cut into segments: at any moment a thread is in the innermost of its spans, or in none."""

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.graph.nodes import GAP, OP, RUNTIME, Longs
from slipstream.analysis.nesting import Nesting, nest, nesting_of
from slipstream.store import Tables


class HostTime(msgspec.Struct, frozen=True, kw_only=True):
    """Segments of all threads, by thread and time; those of a thread follow on each other without a hole.

    A runtime call without length has a segment without length, so that what it launched has a launch.
    """

    thread: Longs
    start: Longs
    end: Longs
    kind: npt.NDArray[np.uint8]
    event: Longs
    """-1: none"""
    outside: npt.NDArray[np.bool_]
    """whether no op, call or range is around the segment"""
    by_event: Longs
    """segments in order of their events, those of one event in order of time"""

    def __len__(self) -> int:
        return len(self.thread)

    def of_event(self, events: pl.Series, *, last: bool = False) -> Longs:
        """The first (or last) segment of the runtime call or op with each event; -1: none."""
        order, ordered = self.by_event, self.event[self.by_event]
        wanted = events.cast(pl.Int64).fill_null(-2).to_numpy()
        place = np.searchsorted(ordered, wanted, side="right" if last else "left") - (1 if last else 0)
        if not len(order):
            return np.full(len(wanted), -1, np.int64)
        safe = np.clip(place, 0, len(order) - 1)
        return np.where(ordered[safe] == wanted, order[safe], -1)

    def part_of(self, thread: int) -> slice:
        """Where the segments of a thread lie."""
        first, last = np.searchsorted(self.thread, [thread, thread + 1])
        return slice(int(first), int(last))


def host_time(tables: Tables) -> HostTime:
    """Cut the time of every thread that has ops or runtime calls."""
    spans = _spans(tables)
    if not spans.height:
        nothing = np.empty(0, np.int64)
        return HostTime(
            thread=nothing,
            start=nothing,
            end=nothing,
            kind=nothing.astype(np.uint8),
            event=nothing,
            outside=nothing.astype(bool),
            by_event=nothing,
        )
    threads = spans["thread"].to_numpy().astype(np.int64)
    begin = spans["ts_ns"].to_numpy().astype(np.int64)
    nesting = nest(threads, begin, begin + spans["dur_ns"].to_numpy(), spans["tie"].to_numpy())
    thread, start, end = _pieces(tables, threads, nesting)
    owner = nesting.innermost(thread, start)
    kind, event = _meaning(spans, nesting, owner)
    thread, start, end, kind, event, owner = _with_moments(spans, nesting, (thread, start, end, kind, event, owner))
    alone = owner < 0
    event[alone] = _calls_around(tables, thread[alone], start[alone], end[alone])
    return HostTime(
        thread=thread,
        start=start,
        end=end,
        kind=kind,
        event=event,
        outside=alone,
        by_event=np.argsort(event, kind="stable"),
    )


def _spans(tables: Tables) -> pl.DataFrame:
    """Ops, runtime calls and ranges of threads that have any of the first two."""
    columns = ("event", "thread", "ts_ns", "dur_ns")
    ops = tables["ops"].select(*columns, kind=pl.lit(OP), tie=pl.col("external_id").fill_null(0))
    runtime = tables["runtime"].select(*columns, kind=pl.lit(RUNTIME), tie=pl.lit(np.iinfo(np.int64).max, pl.Int64))
    marks = tables["annotations"].filter(
        ~pl.col("on_device") & ~pl.col("name").cast(pl.String).str.starts_with("ProfilerStep")
    )
    ranges = marks.select(*columns, kind=pl.lit(GAP), tie=pl.lit(-1, pl.Int64))
    working = pl.concat([ops["thread"], runtime["thread"]]).unique()
    spans = pl.concat([ops, runtime, ranges]).drop_nulls(["thread", "ts_ns"])
    return spans.filter(pl.col("thread").is_in(working.implode()))


def _pieces(tables: Tables, threads: Longs, nesting: Nesting) -> tuple[Longs, Longs, Longs]:
    """Thread, start and end of the pieces between all borders of a thread, step marks among them."""
    steps = tables["steps"].drop_nulls("thread")
    at = steps["thread"].to_numpy().astype(np.int64)
    marked = np.isin(at, threads)
    first, last = steps["start_ns"].to_numpy()[marked], (steps["start_ns"] + steps["dur_ns"]).to_numpy()[marked]
    who = np.concatenate([threads, threads, at[marked], at[marked]])
    when = np.concatenate([nesting.start, nesting.end, first, last])
    order = np.lexsort((when, who))
    who, when = who[order], when[order]
    follows = (who[1:] == who[:-1]) & (when[1:] > when[:-1])
    return who[:-1][follows], when[:-1][follows], when[1:][follows]


def _meaning(spans: pl.DataFrame, nesting: Nesting, owner: Longs) -> tuple[npt.NDArray[np.uint8], Longs]:
    """Kind and event of segments; the own time of an op around others is a gap."""
    kinds = spans["kind"].to_numpy().astype(np.uint8)
    around = np.zeros(spans.height, bool)
    around[nesting.parent[nesting.parent >= 0]] = True
    kinds = np.where(around & (kinds == OP), np.uint8(GAP), kinds)
    events = np.append(spans["event"].to_numpy().astype(np.int64), -1)
    return np.append(kinds, np.uint8(GAP))[owner].astype(np.uint8), events[owner]


_Columns = tuple[Longs, Longs, Longs, npt.NDArray[np.uint8], Longs, Longs]


def _with_moments(spans: pl.DataFrame, nesting: Nesting, columns: _Columns) -> _Columns:
    """Add a segment without length for each runtime call that has none, in front of what begins then."""
    thread, start, end, kind, event, owner = columns
    seen = np.zeros(spans.height, bool)
    seen[owner[owner >= 0]] = True
    unseen = np.flatnonzero(~seen & (spans["kind"].to_numpy() == RUNTIME))
    if not len(unseen):
        return columns
    thread = np.concatenate([thread, spans["thread"].to_numpy()[unseen].astype(np.int64)])
    start = np.concatenate([start, nesting.start[unseen]])
    end = np.concatenate([end, nesting.start[unseen]])
    kind = np.concatenate([kind, np.full(len(unseen), RUNTIME, np.uint8)])
    event = np.concatenate([event, spans["event"].to_numpy()[unseen].astype(np.int64)])
    owner = np.concatenate([owner, unseen])
    # Inside a longer segment the call would overlap it: that one is cut there by its border, as zero is a border too.
    order = np.lexsort((end, start, thread))
    return thread[order], start[order], end[order], kind[order], event[order], owner[order]


def _calls_around(tables: Tables, thread: Longs, start: Longs, end: Longs) -> Longs:
    """Event of the innermost Python call around each whole segment; -1: none."""
    python = tables["python"]
    if not python.height:
        return np.full(len(thread), -1, np.int64)
    nesting = nesting_of(tables.trace, "python")
    index = nesting.innermost(thread, start)
    over = np.flatnonzero(index >= 0)
    while len(over):
        over = over[nesting.end[index[over]] < end[over]]
        index[over] = nesting.parent[index[over]]
        over = over[index[over] >= 0]
    return np.append(python["event"].to_numpy().astype(np.int64), -1)[index]
