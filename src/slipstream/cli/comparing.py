"""From two paths to their comparison, with progress."""

from slipstream.cli.progress import progress
from slipstream.model import BadInput, Difference


def comparison(a: str, b: str) -> Difference:
    """Load two recordings and compare them.

    Args:
        a: whatever ``slipstream.load`` opens, as long as it is one rank's.
        b: the same.
    Raises:
        BadInput: nothing there, several ranks, or nothing that takes time.
    """
    from slipstream.api import diff, load
    from slipstream.store import Trace

    traces: list[Trace] = []
    with progress(f"reading {a}") as now:
        for name, path in (("A", a), ("B", b)):
            now(f"reading {path}")
            loaded = load(path)
            if not isinstance(loaded, Trace):
                names = ", ".join(one.source.path for one in loaded[:4]) + (", ..." if len(loaded) > 4 else "")
                raise BadInput(
                    f"{name} ({path}) holds {len(loaded)} ranks, and one of each side is compared: name one of {names}"
                )
            traces.append(loaded)
        now("comparing")
        return diff(*traces)
