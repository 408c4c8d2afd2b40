"""One representative step as bars: threads, streams, idle causes and findings."""

from collections.abc import Iterator, Sequence
from statistics import median_low

import msgspec
import polars as pl

from slipstream.reports.names import short_name
from slipstream.reports.wording import label, on_device
from slipstream.store import Report

MOST_BARS = 6_000
"""Bars that a browser draws at once without delay."""
_FINEST = 1_500
"""Parts of the step: bars narrower than one of them are joined."""
_DEPTHS = 3
"""Ops inside ops that have a lane of their own."""
_THREADS = 4
_STREAMS = 8

Piece = tuple[int, int, str]
"""Start and end in ns, name."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One row of bars. Times are ns from the beginning of the step."""

    name: str
    kind: str
    """What its bars are: finding, idle, kernel, collective, copy, set, op or runtime."""
    start_ns: list[int]
    dur_ns: list[int]
    text: list[str]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A step."""

    title: str
    note: str
    """What was left out or joined."""
    length_ns: int
    lanes: list[Lane]


def timeline(report: Report) -> Timeline | None:
    """The step whose length is nearest to the median; without steps the window; None where it holds nothing."""
    steps = report.diagnosis.steps
    window = report.diagnosis.window
    if steps:
        middle = median_low(step.dur_ns for step in steps)
        step = min(steps, key=lambda step: (abs(step.dur_ns - middle), step.number))
        title, first, last = f"Step {step.number}", step.start_ns, step.start_ns + step.dur_ns
    else:
        title, first, last = "The recording", window.start_ns, window.end_ns
    length = last - first
    if length <= 0:
        return None
    found = [(name, kind, pieces) for name, kind, pieces in _lanes(report, first, last) if pieces]
    count = sum(len(pieces) for _, _, pieces in found)
    width = length // _FINEST
    shown = [(name, kind, joined(pieces, width)) for name, kind, pieces in found]
    while sum(len(pieces) for _, _, pieces in shown) > MOST_BARS:
        width = max(2 * width, 1)
        shown = [(name, kind, joined(pieces, width)) for name, kind, pieces in found]
    bars = sum(len(pieces) for _, _, pieces in shown)
    if not bars:
        return None
    note = f"{count:,} events as {bars:,} bars: short neighbours are joined." if bars < count else f"{count:,} events."
    return Timeline(
        title=title,
        note=note,
        length_ns=length,
        lanes=[
            Lane(
                name=name,
                kind=kind,
                start_ns=[start - first for start, _, _ in pieces],
                dur_ns=[end - start for start, end, _ in pieces],
                text=[text for _, _, text in pieces],
            )
            for name, kind, pieces in shown
        ],
    )


def joined(pieces: Sequence[Piece], width: int) -> list[Piece]:
    """Bars, with those that are narrower than a width joined to their narrow neighbours.

    Args:
        pieces: of one lane.
        width: in ns.
    """
    bars: list[Piece] = []
    counts: list[int] = []
    narrow = False
    for start, end, name in sorted(pieces):
        small = end - start < width
        if bars and small and narrow and start - bars[-1][1] < width:
            bars[-1] = (bars[-1][0], max(end, bars[-1][1]), bars[-1][2])
            counts[-1] += 1
        else:
            bars.append((start, end, name))
            counts.append(1)
        narrow = small
    return [
        (start, end, name if count == 1 else f"{count:,} events, first {name}")
        for (start, end, name), count in zip(bars, counts, strict=True)
    ]


def _lanes(report: Report, first: int, last: int) -> Iterator[tuple[str, str, list[Piece]]]:
    for finding in report.diagnosis.findings[:8]:
        pieces = [
            (max(one.ts_ns, first), min(one.ts_ns + one.dur_ns, last), f"{one.event} {one.note}".strip())
            for one in finding.evidence
            if one.ts_ns < last and one.ts_ns + one.dur_ns > first
        ]
        yield finding.code, "finding", pieces
    host = not on_device(report)
    idle = _frame(report, "idle_spans", first, last, "start_ns")
    if idle is not None:
        pieces = [
            (start, start + dur, label(f"idle_{cause}", host))
            for start, dur, cause in idle.select("ts_ns", "dur_ns", "cause").iter_rows()
        ]
        yield "rest of the thread" if host else "idle", "idle", _clipped(pieces, first, last)
    yield from _streams(report, first, last)
    yield from _threads(report, first, last)


def _streams(report: Report, first: int, last: int) -> Iterator[tuple[str, str, list[Piece]]]:
    work = _frame(report, "device_work", first, last)
    if work is None:
        return
    order = work.group_by("device", "stream").agg(pl.col("dur_ns").sum()).sort("dur_ns", descending=True)
    several = work["device"].n_unique() > 1
    for device, stream in order.select("device", "stream").head(_STREAMS).iter_rows():
        mine = work.filter(pl.col("device").eq_missing(device) & pl.col("stream").eq_missing(stream))
        name = f"device {device} stream {stream}" if several else f"stream {stream}"
        for kind in ("kernel", "collective", "copy", "set"):
            yield name, kind, _pieces(mine.filter(pl.col("kind").cast(pl.String) == kind), first, last)


def _threads(report: Report, first: int, last: int) -> Iterator[tuple[str, str, list[Piece]]]:
    ops = _frame(report, "ops", first, last)
    if ops is None or not ops.height or not report.tables.has("op_tree"):
        return
    main = report.tables.row("window")["main_thread"]
    ops = ops.join(report.tables["op_tree"].select("event", "depth"), on="event", how="left")
    order = ops.group_by("thread").agg(pl.col("dur_ns").sum()).sort("dur_ns", descending=True)["thread"].to_list()
    order.sort(key=lambda thread: thread != main)
    for place, thread in enumerate(order[:_THREADS]):
        who = "main thread" if thread == main else f"thread {place + 1}"
        mine = ops.filter(pl.col("thread") == thread)
        for depth in range(_DEPTHS if thread == main else 1):
            name = who if not depth else f"{who}, depth {depth + 1}"
            yield name, "op", _pieces(mine.filter(pl.col("depth") == depth), first, last)
        if thread == main:
            calls = _frame(report, "runtime", first, last)
            if calls is not None:
                yield "runtime calls", "runtime", _pieces(calls.filter(pl.col("thread") == thread), first, last)


def _frame(report: Report, name: str, first: int, last: int, start: str = "ts_ns") -> pl.DataFrame | None:
    """Rows of a table that lie in a span; None where this recording has none."""
    if not report.tables.has(name):
        return None
    frame = report.tables[name]
    inside = (pl.col(start) < last) & (pl.col(start) + pl.col("dur_ns") > first)
    return frame.filter(inside).rename({start: "ts_ns"} if start != "ts_ns" else {})


def _pieces(frame: pl.DataFrame, first: int, last: int) -> list[Piece]:
    names: dict[str, str] = {}
    rows = frame.select("ts_ns", "dur_ns", pl.col("name").cast(pl.String)).iter_rows()
    found = []
    for start, dur, name in rows:
        short = names.get(name)
        if short is None:
            short = names[name] = short_name(name or "", 72)
        found.append((start, start + dur, short))
    return _clipped(found, first, last)


def _clipped(pieces: Sequence[Piece], first: int, last: int) -> list[Piece]:
    return [(max(start, first), min(end, last), name) for start, end, name in pieces]
