"""What ``import slipstream`` offers."""

from pathlib import Path

from slipstream.ingest import locate, read
from slipstream.rules.diagnosis import diagnose
from slipstream.store import Trace

__all__ = ["diagnose", "load"]


def load(path: str | Path) -> Trace | list[Trace]:
    """Open a recording.

    Args:
        path: trace file, TensorBoard log directory, run folder or directory of ranks; local or remote.
    Returns:
        One ``Trace``, or one per rank (in the order of ranks) for a directory that holds several.
    Raises:
        BadInput: nothing there, or nothing that can be analysed.
    """
    traces = [read(recording) for recording in locate(path)]
    return traces[0] if len(traces) == 1 else traces
