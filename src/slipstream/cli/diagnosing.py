"""From a path to reports, with progress."""

from slipstream.cli.progress import progress
from slipstream.store import Report


def diagnoses(path: str) -> tuple[Report, ...]:
    """Load what lies under a path and diagnose every rank of it.

    Args:
        path: whatever ``slipstream.load`` opens.
    Raises:
        BadInput: nothing there, or nothing that can be analysed.
    """
    from slipstream.api import diagnose, load
    from slipstream.store import Trace

    with progress(f"reading {path}") as now:
        loaded = load(path)
        traces = [loaded] if isinstance(loaded, Trace) else loaded
        reports = []
        for number, trace in enumerate(traces, 1):
            now(f"diagnosing {trace.source.path} ({number} of {len(traces)})")
            reports.append(diagnose(trace))
    return tuple(reports)
