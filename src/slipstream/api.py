"""What ``import slipstream`` offers."""

from pathlib import Path

from slipstream.analysis import tables_of
from slipstream.analysis.diff import difference
from slipstream.ingest import locate, read_all
from slipstream.model import BadInput, Difference, NotEnoughData
from slipstream.rules.diagnosis import diagnose
from slipstream.store import Trace

__all__ = ["diagnose", "diff", "load"]


def load(path: str | Path) -> Trace | list[Trace]:
    """Open a recording; several large ones at the same time, each in a process of its own.

    Args:
        path: trace file, TensorBoard log directory, run folder or directory of ranks; local or remote.
    Returns:
        One ``Trace``, or one per rank (in the order of ranks) for a directory that holds several.
    Raises:
        BadInput: nothing there, or nothing that can be analysed.
        MissingDependency: a remote address needs a package that is not installed.
    """
    traces = read_all(locate(path))
    return traces[0] if len(traces) == 1 else traces


def diff(a: Trace, b: Trace) -> Difference:
    """Say what changed from one recording to another.

    Args:
        a: one rank's recording: what was.
        b: the other one: what is.
    Raises:
        BadInput: nothing in one of them takes time.
    """
    try:
        return difference(tables_of(a), tables_of(b))
    except NotEnoughData as reason:
        raise BadInput(str(reason)) from reason
