"""The recorded rows of a slice as elements of ``traceEvents``, in the words that torch.profiler writes."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from slipstream.reports.perfetto.lanes import lanes
from slipstream.store import Trace

Element = dict[str, Any]

_DEVICE_ROW = {"device": "device", "stream": "stream", "correlation": "correlation", "external_id": "External id"}
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "ops": {
        "external_id": "External id",
        "sequence": "Sequence number",
        "fwd_thread": "Fwd thread id",
        "input_dims": "Input Dims",
        "input_types": "Input type",
        "concrete_inputs": "Concrete Inputs",
    },
    "python": {"python_id": "Python id", "python_parent": "Python parent id", "module_id": "Python module id"},
    "runtime": {"correlation": "correlation", "external_id": "External id"},
    "kernels": {
        **_DEVICE_ROW,
        "grid": "grid",
        "block": "block",
        "registers": "registers per thread",
        "shared_bytes": "shared memory",
        "blocks_per_sm": "blocks per SM",
        "warps_per_sm": "warps per SM",
    },
    "copies": {**_DEVICE_ROW, "size_bytes": "bytes"},
    "sets": {**_DEVICE_ROW, "size_bytes": "bytes"},
    "syncs": {"device": "device", "stream": "stream", "correlation": "correlation", "wait_on_stream": "wait_on_stream"},
    "annotations": {"external_id": "External id"},
}
"""Columns that become arguments, by table; what the tables do not keep is not in a slice."""
_AS_JSON = frozenset(("input_dims", "input_types", "concrete_inputs", "grid", "block"))


def slices(trace: Trace, start_ns: int, end_ns: int, pid_of: Mapping[int, int], shift_ns: int) -> Iterator[Element]:
    """Complete events, clipped to the span; those that cross another one of their thread get a thread of their own.

    Args:
        trace: rows that overlap the span.
        start_ns: where the span begins.
        end_ns: where it ends.
        pid_of: process number in the document of each row of ``threads``.
        shift_ns: what is added to every position.
    """
    arguments = _arguments(trace)
    rows = trace.events.filter(
        (pl.col("phase") == "X") & pl.col("ts_ns").is_not_null() & pl.col("thread").is_not_null()
    )
    rows = rows.with_columns(pl.col("dur_ns").fill_null(0)).sort("thread", "ts_ns", -pl.col("dur_ns"), "event")
    for (thread,), own in rows.group_by("thread", maintain_order=True):
        number = msgspec.convert(thread, int)
        # A launch before the slice stays whole: its arrow begins there.
        spans = [
            (max(ts, start_ns), min(ts + dur, end_ns)) if ts + dur > start_ns else (ts, ts + dur)
            for ts, dur in own.select("ts_ns", "dur_ns").iter_rows()
        ]
        columns = own.select("event", "name", "category", "ts_ns", "dur_ns").iter_rows()
        order = sorted(zip(spans, columns, strict=True), key=lambda both: (both[0][0], -both[0][1]))
        for ((start, end), (event, name, category, ts, dur)), lane in zip(
            order, lanes(span for span, _ in order), strict=True
        ):
            element = complete(name, category, start + shift_ns, end - start, pid_of[number], tid(number, lane))
            known = arguments.get(event, {})
            if end - start != dur:
                known = {**known, "clipped": f"began {ts} ns, lasted {dur} ns"}
            if known:
                element["args"] = known
            yield element


def arrows(trace: Trace, pid_of: Mapping[int, int], shift_ns: int, first_id: int) -> list[Element]:
    """Both ends of every arrow whose ends both lie in the slice, with ids counted on from ``first_id``."""
    ends = trace.flows.filter(pl.col("flow_id").is_not_null() & pl.col("thread").is_not_null())
    key = ["kind", "flow_id"]
    both = ends.group_by(key).agg(pl.col("start").any().alias("from"), (~pl.col("start")).any().alias("to"))
    both = both.filter("from", "to").sort("kind", "flow_id").with_row_index("arrow", first_id)
    found = ends.join(both.select(*key, "arrow"), on=key).sort("arrow", ~pl.col("start"), "ts_ns")
    elements = []
    for kind, start, thread, ts, arrow in found.select("kind", "start", "thread", "ts_ns", "arrow").iter_rows():
        element = {"ph": "s" if start else "f", "id": arrow, "cat": kind, "name": kind, "ts": micros(ts + shift_ns)}
        element |= {"pid": pid_of[thread], "tid": tid(thread, 0)}
        if not start:
            element["bp"] = "e"
        elements.append(element)
    return elements


def complete(name: str | None, category: str | None, ts_ns: int, dur_ns: int, pid: int, tid: int) -> Element:
    """One bar."""
    return {
        "ph": "X",
        "cat": category or "unknown",
        "name": name or "unnamed",
        "ts": micros(ts_ns),
        "dur": micros(dur_ns),
        "pid": pid,
        "tid": tid,
    }


def micros(ns: int) -> float:
    """Microseconds; exact to the nanosecond below 2^43 us."""
    return round(ns / 1000, 3)


LANES = 100
"""Room for the lanes of one thread among the thread numbers of a document."""


def tid(thread: int, lane: int) -> int:
    """Thread number in the document."""
    return thread * LANES + min(lane, LANES - 1) + 1


def _arguments(trace: Trace) -> dict[int, Element]:
    found: dict[int, Element] = {}
    for table, names in ARGUMENTS.items():
        rows = trace.table(table).select("event", *names)
        for event, *values in rows.iter_rows():
            known = {
                word: msgspec.Raw(value.encode()) if column in _AS_JSON else value
                for (column, word), value in zip(names.items(), values, strict=True)
                if value is not None
            }
            if known:
                found[event] = known
    return found
