"""Whether somebody wants another window of a watched job."""

from pathlib import Path

from slipstream.capture.clock import monotonic_ns

REQUEST = "record-now"
"""File in the run folder: whenever it is touched, a watched job records another window."""
_LOOK_NS = 1_000_000_000


class Requests:
    """Looks, at most once a second, whether a file has been touched.

    Args:
        file: need not exist.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = self._touched()
        self._next_ns = 0

    def new(self) -> bool:
        """Whether it was touched since the last look."""
        now = monotonic_ns()
        if now < self._next_ns:
            return False
        self._next_ns = now + _LOOK_NS
        touched = self._touched()
        if touched == self._seen:
            return False
        self._seen = touched
        return touched is not None

    def _touched(self) -> int | None:
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return None
