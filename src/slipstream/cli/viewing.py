"""Chooses what to cut out of a recording and writes it for Perfetto."""

import re

import msgspec

from slipstream.analysis import tables_of
from slipstream.analysis.rank_clocks import align
from slipstream.cli.progress import progress
from slipstream.ingest import Recording, keep_diagnosis, kept_diagnosis, locate, open_kept
from slipstream.model import BadInput, Diagnosis, NotEnoughData
from slipstream.reports.perfetto import Slice, timeline
from slipstream.rules.diagnosis import diagnose
from slipstream.store import Trace, excerpt

STEPS = re.compile(r"(\d+)(?:-(\d+))?")
FINDING = re.compile(r"([A-Z]{3}\d{3}-\d+)(?::(\d+))?")
AROUND_NS = 2_000_000
"""Shown before and after an instance of a finding, unless the instance itself is longer."""
MOST_EVENTS = 200_000
"""Of a recording without steps that many events are shown unless a span is named."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to show; with nothing named a step of median length."""

    steps: tuple[int, int] | None = None
    """Numbers of the first and the last step."""
    finding: tuple[str, int] | None = None
    """Id of a finding and which of its instances, counted from 0."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A slice that was cut."""

    document: bytes
    what: str
    """What is shown, in words."""
    notes: tuple[str, ...]
    """What is not, and why."""


def wanted(steps: str | None, finding: str | None) -> Wanted:
    """Read the options.

    Raises:
        BadInput: they cannot be read, or both are given.
    """
    if steps and finding:
        raise BadInput("--steps and --finding exclude each other: name one")
    if steps:
        match = STEPS.fullmatch(steps.strip())
        if match is None:
            raise BadInput(f"--steps {steps} is neither a number nor a range such as 3-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise BadInput(f"--steps {steps} ends before it begins")
        return Wanted(steps=(first, last))
    if finding:
        match = FINDING.fullmatch(finding.strip().upper())
        if match is None:
            raise BadInput(f"--finding {finding} is no id such as SYN001-1, or SYN001-1:2 for its second instance")
        return Wanted(finding=(match[1], max(int(match[2] or 1), 1) - 1))
    return Wanted()


def view(path: str, what: Wanted) -> View:
    """Cut a slice out of every rank under a path.

    Args:
        path: whatever ``slipstream.load`` opens.
        what: steps or a finding.
    Raises:
        BadInput: nothing there, no such step or finding, or nothing in the span.
    """
    with progress(f"reading {path}") as now:
        recordings = locate(path)
        traces = [open_kept(recording) for recording in recordings]
        notes: list[str] = []
        shifts = _shifts(traces, notes)
        parts = []
        words = ""
        for recording, trace, shift in zip(recordings, traces, shifts, strict=True):
            now(f"diagnosing {recording.path}")
            diagnosis = _diagnosis(recording, trace)
            start, end, words = _span(trace, diagnosis, what, notes)
            now(f"cutting {recording.path}")
            parts.append(_slice(trace, diagnosis, start, end, shift))
        document, missing = timeline(parts)
    return View(document=document, what=words, notes=tuple(dict.fromkeys((*notes, *missing))))


def _diagnosis(recording: Recording, trace: Trace) -> Diagnosis:
    known = kept_diagnosis(recording)
    if known is None:
        known = diagnose(trace).diagnosis
        keep_diagnosis(recording, known)
    return known


def _shifts(traces: list[Trace], notes: list[str]) -> list[int]:
    """What brings every rank onto the first one's clock."""
    if len(traces) < 2:
        return [0]
    try:
        return [-fit.shift_ns for fit in align(traces)]
    except NotEnoughData as reason:
        origins = [trace.source.origin_ns for trace in traces]
        if any(origin is None for origin in origins):
            notes.append(f"ranks are not on one clock: {reason}, and a recording tells no absolute time")
            return [0] * len(traces)
        notes.append(f"ranks are laid beside each other by their own clocks, which may differ: {reason}")
        return [int(str(origin)) - int(str(origins[0])) for origin in origins]


def _span(trace: Trace, diagnosis: Diagnosis, what: Wanted, notes: list[str]) -> tuple[int, int, str]:
    if what.finding is not None:
        return _around_instance(diagnosis, *what.finding)
    if what.steps is not None:
        return _of_steps(trace, *what.steps)
    steps = trace.steps
    if steps.height:
        lasted = steps.sort("dur_ns", "number")
        row = lasted.row(lasted.height // 2, named=True)
        words = f"step {row['number']}, " + (
            f"of median length among {steps.height}" if steps.height > 1 else "the only one"
        )
        return row["start_ns"], row["start_ns"] + row["dur_ns"], words
    timed = trace.events["ts_ns"].drop_nulls().sort()
    if not timed.len():
        raise BadInput("no event of the recording has a time")
    if timed.len() <= MOST_EVENTS:
        ends = (trace.events["ts_ns"] + trace.events["dur_ns"].fill_null(0)).max()
        return int(timed[0]), int(str(ends)) + 1, "the whole recording (it has no steps)"
    notes.append(f"the recording has no steps: only its first {MOST_EVENTS:,} of {timed.len():,} events are shown")
    return int(timed[0]), int(timed[MOST_EVENTS]), f"the first {MOST_EVENTS:,} events"


def _of_steps(trace: Trace, first: int, last: int) -> tuple[int, int, str]:
    rows = trace.steps.filter(trace.steps["number"].is_between(first, last))
    if not rows.height:
        known = trace.steps["number"].sort().to_list()
        there = f"it has {known[0]} to {known[-1]}" if known else "it has none"
        raise BadInput(f"{trace.source.path} has no step {first}{f' to {last}' if last > first else ''}: {there}")
    end = int(str((rows["start_ns"] + rows["dur_ns"]).max()))
    words = f"step {first}" if first == last else f"steps {first} to {last}"
    return int(str(rows["start_ns"].min())), end, words


def _around_instance(diagnosis: Diagnosis, name: str, instance: int) -> tuple[int, int, str]:
    ids = [finding.id for finding in diagnosis.findings]
    if name not in ids:
        raise BadInput(f"no finding {name} in {diagnosis.source.path}: there are {', '.join(ids) or 'none'}")
    evidence = diagnosis.findings[ids.index(name)].evidence
    if instance >= len(evidence):
        raise BadInput(f"{name} shows {len(evidence)} instances in its evidence, not {instance + 1}")
    shown = evidence[instance]
    around = max(shown.dur_ns, AROUND_NS)
    return (
        max(0, shown.ts_ns - around),
        shown.ts_ns + shown.dur_ns + around,
        f"{name}, instance {instance + 1} of {len(evidence)} in its evidence",
    )


def _slice(trace: Trace, diagnosis: Diagnosis, start: int, end: int, shift: int) -> Slice:
    part = excerpt(trace, start, end)
    if not part.events.height:
        raise BadInput(f"{trace.source.path} has no event between {start} and {end} ns")
    margin = end - start
    wider = excerpt(trace, start - margin, end + margin)
    return Slice(trace=part, tables=tables_of(wider), diagnosis=diagnosis, start_ns=start, end_ns=end, shift_ns=shift)
