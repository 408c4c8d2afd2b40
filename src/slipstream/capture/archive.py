"""Windows of a long training that are kept: the first, the slowest, the latest."""

from pathlib import Path

import msgspec

from slipstream.capture.watching import Reason

WINDOWS = "windows"
LIST = "windows.json"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One window."""

    file: str
    """Relative to the rank's folder; any command of slipstream takes it."""
    first_step: int
    reason: Reason
    median_step_ns: int | None


class Archive:
    """Puts windows away and forgets most of them.

    Args:
        keep: how many stay, besides the current one; at least two.
    """

    def __init__(self, keep: int) -> None:
        self._keep = max(keep, 2)
        self._kept: list[Kept] = []
        self._current: Kept | None = None

    def put_away(self, folder: Path) -> None:
        """Move the current window's file, if there is one, before another takes its place.

        Args:
            folder: of the rank.
        """
        file = folder / "trace.json.gz"
        if self._current is None or not file.exists():
            return
        (folder / WINDOWS).mkdir(exist_ok=True)
        name = f"{WINDOWS}/step{self._current.first_step:08d}.json.gz"
        file.replace(folder / name)
        self._kept.append(msgspec.structs.replace(self._current, file=name))
        self._current = None
        while len(self._kept) > self._keep:
            slowest = max(self._kept, key=lambda one: one.median_step_ns or 0)
            out = next(one for one in self._kept[1:] if one is not slowest)  # the oldest that is neither
            (folder / out.file).unlink(missing_ok=True)
            self._kept.remove(out)

    def note(self, folder: Path, first_step: int, reason: Reason, median_step_ns: int | None) -> None:
        """Write down what the current window is.

        Args:
            folder: of the rank.
            first_step: its first recorded step.
            reason: why it was opened.
            median_step_ns: of its steps; None: none was complete.
        """
        self._current = Kept(file="trace.json.gz", first_step=first_step, reason=reason, median_step_ns=median_step_ns)
        part = folder / f"{LIST}.part"
        part.write_bytes(msgspec.json.format(msgspec.json.encode([*self._kept, self._current]), indent=1))
        part.replace(folder / LIST)
