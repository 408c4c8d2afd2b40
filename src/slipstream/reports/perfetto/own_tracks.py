"""slipstream's own tracks in a slice: findings, idle causes, the critical path and the length of the launch queue."""

from collections.abc import Callable, Iterator

import polars as pl

from slipstream.model import Diagnosis, NotEnoughData
from slipstream.reports.perfetto.lanes import lanes
from slipstream.reports.perfetto.recorded_rows import LANES, Element, complete, micros
from slipstream.store import Tables

CATEGORY = "slipstream"


def findings(
    diagnosis: Diagnosis, start_ns: int, end_ns: int, pid: int, first_tid: int, shift_ns: int
) -> list[Element]:
    """The evidence of the findings that lies in the span: a track each, the costliest on top."""
    elements: list[Element] = []
    number = first_tid
    for finding in diagnosis.findings:
        inside = sorted(
            (evidence.ts_ns, -evidence.dur_ns, evidence.event, evidence.note)
            for evidence in finding.evidence
            if evidence.ts_ns < end_ns and evidence.ts_ns + evidence.dur_ns >= start_ns
        )
        if not inside:
            continue
        spans = [(ts, ts - negative) for ts, negative, _, _ in inside]
        used = 0
        for (ts, negative, event, note), lane in zip(inside, lanes(spans), strict=True):
            bar = complete(finding.title, CATEGORY, ts + shift_ns, -negative, pid, number + min(lane, LANES - 1))
            bar["args"] = {"finding": finding.id, "event": event, "note": note}
            elements.append(bar)
            used = max(used, lane)
        elements += [named(pid, number + lane, f"{finding.id} {finding.code}") for lane in range(used + 1)]
        number += LANES
    return elements


def idle_causes(tables: Tables, start_ns: int, end_ns: int, pid: int, tid: int, shift_ns: int) -> list[Element]:
    """Why the device (or the main thread) stood still, as bars."""
    return _spans(tables, "idle_spans", "idle causes", "cause", start_ns, end_ns, pid, tid, shift_ns)


def critical_path(tables: Tables, start_ns: int, end_ns: int, pid: int, tid: int, shift_ns: int) -> list[Element]:
    """The chain of tasks that the time consists of, as bars."""
    return _spans(tables, "critical_path", "critical path", "name", start_ns, end_ns, pid, tid, shift_ns)


def queue_lengths(tables: Tables, start_ns: int, end_ns: int, pid: int, tid: int, shift_ns: int) -> list[Element]:
    """Launched and not yet begun, per stream, as counters; each begins with its value at the start of the span."""
    elements = []
    for (device, stream), rows in tables["queue_depths"].group_by("device", "stream", maintain_order=True):
        name = f"launch queue, device {device} stream {stream}"
        before = rows.filter(pl.col("ts_ns") < start_ns)["depth"]
        points = [(start_ns, before[-1] if before.len() else 0)]
        within = rows.filter(pl.col("ts_ns").is_between(start_ns, end_ns))
        points += within.select("ts_ns", "depth").iter_rows()
        elements += [
            {"ph": "C", "name": name, "pid": pid, "tid": tid, "ts": micros(ts + shift_ns), "args": {"waiting": depth}}
            for ts, depth in points
        ]
    return elements


def named(pid: int, tid: int, name: str) -> Element:
    """The name of a track."""
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


Track = Callable[[Tables, int, int, int, int, int], list[Element]]
TRACKS: dict[str, Track] = {
    "idle causes": idle_causes,
    "critical path": critical_path,
    "launch queue": queue_lengths,
}


def derived_tracks(
    tables: Tables, start_ns: int, end_ns: int, pid: int, first_tid: int, shift_ns: int
) -> Iterator[tuple[str, list[Element] | str]]:
    """Every track that is drawn from derived tables, with its elements or the reason why there is none."""
    for place, (name, track) in enumerate(TRACKS.items()):
        try:
            yield name, track(tables, start_ns, end_ns, pid, first_tid + place, shift_ns)
        except NotEnoughData as reason:
            yield name, str(reason)


def _spans(
    tables: Tables, table: str, track: str, label: str, start_ns: int, end_ns: int, pid: int, tid: int, shift_ns: int
) -> list[Element]:
    end = pl.col("start_ns") + pl.col("dur_ns")
    rows = tables[table].filter((pl.col("start_ns") < end_ns) & (end > start_ns)).sort("start_ns")
    elements = [named(pid, tid, track)]
    for row in rows.iter_rows(named=True):
        begin = max(row["start_ns"], start_ns)
        stop = min(row["start_ns"] + row["dur_ns"], end_ns)
        bar = complete(row[label] or row.get("kind"), CATEGORY, begin + shift_ns, stop - begin, pid, tid)
        more = {key: row[key] for key in ("kind", "resource", "inferred", "step") if row.get(key) is not None}
        if more:
            bar["args"] = more
        elements.append(bar)
    return elements
