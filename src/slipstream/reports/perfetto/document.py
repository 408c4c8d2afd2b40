"""Slices of one recording, or of several ranks beside each other, as one document."""

from collections.abc import Sequence

import msgspec
import polars as pl

from slipstream.model import Diagnosis
from slipstream.reports.perfetto.own_tracks import derived_tracks, findings, named
from slipstream.reports.perfetto.recorded_rows import LANES, Element, arrows, slices, tid
from slipstream.store import Tables, Trace

PIDS = 10_000
"""Process numbers that one rank has to itself."""


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be shown of one rank."""

    trace: Trace
    """The rows that lie in the span, see ``store.excerpt``."""
    tables: Tables
    """Derived tables of a longer part around the span: at its edges they would not know what came before."""
    diagnosis: Diagnosis
    start_ns: int
    end_ns: int
    shift_ns: int = 0
    """What is added to its positions, so that ranks lie on one clock."""


def timeline(parts: Sequence[Slice]) -> tuple[bytes, tuple[str, ...]]:
    """Write slices as a Chrome trace.

    Args:
        parts: one per rank; ids of their processes and arrows are kept apart.
    Returns:
        JSON, and what could not be drawn and why, a sentence each.
    """
    elements: list[Element] = []
    notes: list[str] = []
    arrow = 1
    for place, part in enumerate(parts):
        rank = (
            "" if len(parts) == 1 else f"rank {part.trace.source.rank if part.trace.source.rank is not None else place}"
        )
        base = place * PIDS
        elements += _own(part, base, rank, notes)
        pid_of = _processes(part.trace, base, rank, elements)
        bars = list(slices(part.trace, part.start_ns, part.end_ns, pid_of, part.shift_ns))
        elements += _thread_names(part.trace, pid_of, {bar["tid"] for bar in bars})
        elements += bars
        flows = arrows(part.trace, pid_of, part.shift_ns, arrow)
        arrow += len(flows)
        elements += flows
    document = {
        "schemaVersion": 1,
        "displayTimeUnit": "ns",
        "slipstream": [
            {"path": part.trace.source.path, "start_ns": part.start_ns, "end_ns": part.end_ns} for part in parts
        ],
        "traceEvents": elements,
    }
    return msgspec.json.encode(document), tuple(notes)


def _own(part: Slice, base: int, rank: str, notes: list[str]) -> list[Element]:
    pid = base + 1
    span = (part.start_ns, part.end_ns)
    elements = _process(pid, f"slipstream {rank}".strip(), base)
    for name, drawn in derived_tracks(part.tables, *span, pid, 1, part.shift_ns):
        if isinstance(drawn, str):
            notes.append(f"{f'{rank}: ' if rank else ''}no track '{name}': {drawn}")
        else:
            elements += drawn
    return elements + findings(part.diagnosis, *span, pid, LANES, part.shift_ns)


def _processes(trace: Trace, base: int, rank: str, elements: list[Element]) -> dict[int, int]:
    """Process number of every row of ``threads``; their names are added to ``elements``."""
    numbers: dict[str | None, int] = {}
    found = {}
    for row in trace.threads.iter_rows(named=True):
        if row["pid"] not in numbers:
            numbers[row["pid"]] = base + 2 + len(numbers)
            name = f"{rank} {row['process_name'] or ''} {row['pid'] or ''}".strip()
            elements += _process(numbers[row["pid"]], name, base + len(numbers))
        found[row["thread"]] = numbers[row["pid"]]
    return found


def _process(pid: int, name: str, order: int) -> list[Element]:
    common: Element = {"ph": "M", "pid": pid, "tid": 0, "ts": 0}
    return [
        {**common, "name": "process_name", "args": {"name": name}},
        {**common, "name": "process_sort_index", "args": {"sort_index": order}},
    ]


def _thread_names(trace: Trace, pid_of: dict[int, int], used: set[int]) -> list[Element]:
    names = trace.threads.select("thread", pl.coalesce("thread_name", "tid").alias("name"))
    known = dict(names.iter_rows())
    elements = []
    for number in sorted(used):
        thread, lane = divmod(number - 1, LANES)
        name = known.get(thread) or "unnamed"
        elements.append(named(pid_of[thread], tid(thread, lane), name if not lane else f"{name} (crossing {lane})"))
    return elements
