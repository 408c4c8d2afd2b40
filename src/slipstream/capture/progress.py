"""Tells the launcher's caller what the recording is doing."""

from collections.abc import Callable

from slipstream.capture.outcomes import status_of
from slipstream.capture.status import State
from slipstream.store import RunFolder

_TEXTS: dict[State, str] = {
    "warming_up": "the job trains; waiting for steady steps",
    "recording": "recording",
    "tracing_lines": "recording one more step line by line",
    "over": "recording done; the job goes on",
}


class Progress:
    """Watches the status of the first rank.

    Args:
        folder: the run folder.
        tell: told whenever the state changes; None: nobody listens.
    """

    def __init__(self, folder: RunFolder, tell: Callable[[str], None] | None) -> None:
        self._folder = folder
        self._tell = tell
        self._last: State | None = None

    def look(self) -> None:
        """See whether something has changed."""
        if self._tell is None:
            return
        status = status_of(self._folder)
        if status is not None and status.state != self._last:
            self._last = status.state
            self._tell(_TEXTS[status.state])
