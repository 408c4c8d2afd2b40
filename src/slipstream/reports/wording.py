"""The words for parts, causes, grades and devices, and the verdict in one sentence."""

from collections.abc import Mapping
from statistics import median_low

from slipstream.model import CAUSES, BreakdownPart, Finding, Gain, Location
from slipstream.reports.names import short_file
from slipstream.reports.units import article, duration, percent, plural
from slipstream.store import Report

DEVICE = {
    "cuda": "GPU",
    "rocm": "GPU",
    "xpu": "GPU",
    "mps": "GPU",
    "npu": "NPU",
    "mtia": "device",
    "cpu": "CPU",
    "unknown": "device",
}

GRADE = {
    "A": "nothing was repaired",
    "B": "repairs without effect on totals",
    "C": "below 1 % of the device's time is affected",
    "D": "the file is cut, or below 10 % of the device's time is affected",
    "E": "10 % or more of the device's time is affected, or totals are lower bounds",
    "F": "nothing usable",
}

_WAITS = {
    "loader": "waits for the data loader",
    "preprocessing": "waits while the host prepares the batch",
    "sync": "runs dry where the host waits for it",
    "launch": "waits for the host to launch the next kernel",
    "allocator": "waits for memory to be allocated",
    "host": "waits for Python and framework code on the host",
    "gc": "waits for Python's garbage collector",
    "compile": "waits for a compiler",
    "comm_wait": "waits for other ranks",
    "graph_capture": "waits for graphs to be captured",
    "end_of_data": "has no more data to work on",
    "unattributed": "stands still for reasons the recording does not show",
}
"""What an idle device does, after "it"."""

_HOST_DOES = _WAITS | {
    "preprocessing": "prepares the batch",
    "sync": "waits for a device",
    "launch": "launches work",
    "allocator": "allocates memory",
    "host": "runs Python and framework code between ops",
    "gc": "collects garbage",
    "compile": "compiles",
    "graph_capture": "captures graphs",
    "unattributed": "does what the recording does not show",
}
"""The same where the main thread is what counts."""

_LABELS = {
    "loader": "data loader",
    "preprocessing": "preparing the batch",
    "sync": "host waits for device",
    "launch": "launching kernels",
    "allocator": "allocating memory",
    "host": "Python and framework",
    "gc": "garbage collector",
    "compile": "compiler",
    "comm_wait": "waiting for other ranks",
    "graph_capture": "capturing graphs",
    "end_of_data": "no more data",
    "unattributed": "cause not recorded",
}

_CODES = {
    "loader": ("INP001", "INP002"),
    "preprocessing": ("INP005",),
    "sync": ("SYN", "INP003"),
    "launch": ("LCH001",),
    "allocator": ("MEM001",),
    "host": ("HST",),
    "gc": ("HST001",),
    "compile": ("CPL",),
    "comm_wait": ("COM",),
}
"""Rules that speak of a cause, by how their codes begin."""

WORTH_NAMING = 0.1
"""Share of the time below which idleness is not what the verdict is about."""


def device_word(report: Report) -> str:
    """What the work ran on: GPU, NPU, CPU or device."""
    return DEVICE[report.diagnosis.source.device_kind]


def on_device(report: Report) -> bool:
    """Whether a device did the work; false: the main thread is what counts."""
    return bool(report.tables.row("window")["on_device"])


def place(location: Location | None, *, brief: bool = False) -> str:
    """Where something is: ``train.py:42 in main``, or ``in function main (train.py:40)``, which is its def.

    Args:
        location: None: not known, which is an empty string.
        brief: for a narrow column: no function where the line itself is known, no folders of a long path.
    """
    if location is None:
        return ""
    at = f"{short_file(location.file) if brief else location.file}:{location.line}"
    if location.precision == "function":
        return f"in {location.function} ({at})" if brief else f"in function {location.function} ({at})"
    return at if brief or location.function == "<module>" else f"{at} in {location.function}"


def period(report: Report) -> str:
    """What shares are of: ``a 176 ms step``, ``the only recorded step (1.21 s)`` or ``the recorded 2.40 s``."""
    window = report.tables.row("window")
    steps = report.diagnosis.steps
    if not window["steps"] or not steps:
        return f"the recorded {duration(report.diagnosis.window.end_ns - report.diagnosis.window.start_ns)}"
    length = duration(median_low(step.dur_ns for step in steps))
    return f"{article(length)} {length} step" if len(steps) > 1 else f"the only recorded step ({length})"


def label(part: str, host: bool) -> str:
    """A part of the breakdown in words.

    Args:
        part: as in the JSON contract.
        host: whether the main thread is what counts.
    """
    named = {
        "compute": "inside ops" if host else "computing",
        "exposed_communication": "communication, not hidden",
        "exposed_copies": "copies, not hidden",
    }
    cause = part.removeprefix("idle_")
    if part in named:
        return named[part]
    return _LABELS.get(cause, cause) if host else f"idle: {_LABELS.get(cause, cause)}"


def inferred_parts(report: Report) -> frozenset[str]:
    """Parts of the breakdown whose cause was inferred for most of their time."""
    sums = dict.fromkeys(CAUSES, 0)
    for cause in report.diagnosis.window.idle_causes:
        sums[cause.cause] += cause.ns if cause.inferred else -cause.ns
    return frozenset(f"idle_{cause}" for cause, ns in sums.items() if ns > 0)


def verdict(report: Report) -> str:
    """What holds this recording back, in one sentence."""
    parts = report.diagnosis.breakdown
    if report.diagnosis.window.end_ns == report.diagnosis.window.start_ns:
        return "Nothing was recorded that could be diagnosed."
    lost = sorted((part for part in parts if part.part != "compute"), key=lambda part: -part.share)
    if not parts:
        return _without_breakdown(report)
    if sum(part.share for part in lost) < WORTH_NAMING:
        return _busy(report, parts)
    idle = [part for part in lost if part.part.startswith("idle_")]
    idle_share = sum(part.share for part in idle)
    if not on_device(report) and idle:
        worked = sum(part.share for part in parts if part.part == "compute")
        reason = _reason(report, idle, _HOST_DOES, "it mostly")
        return f"The main thread is inside ops for {percent(worked)} of {period(report)}; otherwise {reason}."
    if lost[0].part == "exposed_communication" and lost[0].share > idle_share:
        return (
            f"The {device_word(report)} spends {percent(lost[0].share)} of {period(report)} in communication that no "
            f"computation hides{_culprit(report, ('COM',))}."
        )
    if lost[0].part == "exposed_copies" and lost[0].share > idle_share:
        return (
            f"The {device_word(report)} spends {percent(lost[0].share)} of {period(report)} copying memory while "
            f"nothing computes{_culprit(report, ('INP003', 'INP004'))}."
        )
    reason = _reason(report, idle, _WAITS, "mostly it")
    exposed = next((part.share for part in lost if part.part == "exposed_communication"), 0.0)
    also = f" Another {percent(exposed)} is communication that no computation hides." if exposed >= WORTH_NAMING else ""
    return f"The {device_word(report)} is idle {percent(idle_share)} of {period(report)}; {reason}.{also}"


def _reason(report: Report, idle: list[BreakdownPart], phrases: Mapping[str, str], mostly: str) -> str:
    """What most of the idle time is, and the second cause where the first does not explain half of it."""
    first = idle[0].part.removeprefix("idle_")
    what = f"{phrases[first]}{_culprit(report, _CODES.get(first, ()))}"
    if len(idle) == 1 or idle[0].share >= sum(part.share for part in idle) / 2:
        return f"{mostly} {what}"
    second = idle[1].part.removeprefix("idle_")
    return f"it {what} ({percent(idle[0].share)}) or {phrases[second]} ({percent(idle[1].share)})"


def _culprit(report: Report, codes: tuple[str, ...]) -> str:
    """The place of the costliest finding about a cause, in brackets; empty when that is not known."""
    found: Finding | None = next((f for f in report.diagnosis.findings if f.code.startswith(codes)), None)
    if found is None or found.location is None:
        return ""
    location = found.location
    inside = f"{location.function}, " if location.precision == "function" else ""
    return f" ({inside}{short_file(location.file)}:{location.line})"


NAMED_SHARE = 0.05
"""A finding that costs less than this is not named in the verdict of a busy run."""


def _busy(report: Report, parts: tuple[BreakdownPart, ...]) -> str:
    worked = percent(sum(part.share for part in parts if part.part == "compute"))
    if on_device(report):
        what, inside, hot = (
            f"The {device_word(report)} computes",
            "the kernels themselves",
            report.diagnosis.top_kernels,
        )
    else:
        what, inside, hot = "The main thread is inside ops", "the ops themselves", report.diagnosis.top_ops
    most = _costliest(report) or (f"; the costliest takes {percent(hot[0].share)} of their time" if hot else "")
    return f"{what} for {worked} of {period(report)}: what is left to win lies in {inside}{most}."


def _costliest(report: Report) -> str:
    """The findings to look at first, by code; empty where none costs enough to be named in a verdict."""
    window = report.diagnosis.window
    length = window.end_ns - window.start_ns
    large = [finding for finding in report.diagnosis.findings if finding.cost_ns >= NAMED_SHARE * length]
    named = [f"{finding.code} ({percent(finding.cost_ns / length)} of it)" for finding in large[:2]]
    return f", first {' and '.join(named)}" if named else ""


def _without_breakdown(report: Report) -> str:
    window = report.diagnosis.window
    if window.busy_ns is None:
        return f"How busy the {device_word(report)} was in {period(report)} cannot be told: its work was not recorded."
    return f"Work took {duration(window.busy_ns)} of {period(report)}; what the rest was cannot be told."


def times_of(report: Report) -> str:
    """Whose time ops are listed by: the device's, or without device work the CPU's own."""
    return f"{device_word(report)} time" if report.diagnosis.totals.gpu_events else "own time on the CPU"


def expected(gain: Gain) -> str:
    """The share of time that a fix would save: ``29 %``, or ``at most 29 %``."""
    return f"{'at most ' if gain.ceiling else ''}{percent(gain.expected)}"


def steps_line(report: Report) -> str:
    """How many steps were recorded and how long they took."""
    steps = report.diagnosis.steps
    if not steps:
        return "no steps"
    length = duration(median_low(step.dur_ns for step in steps))
    kind = ", inferred from repetition" if any(step.inferred for step in steps) else ""
    if len(steps) == 1:
        return f"1 step of {length}{kind}: how much steps vary is not known"
    least, most = duration(min(step.dur_ns for step in steps)), duration(max(step.dur_ns for step in steps))
    return f"{plural(len(steps), 'step')}, median {length} ({least} to {most}){kind}"
