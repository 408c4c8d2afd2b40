"""What the callbacks of trainers share: a recording from the beginning of training to its end, told at the end."""

from pathlib import Path

from slipstream.api import Profile, profile
from slipstream.capture.job import STEPS
from slipstream.model import BadInput
from slipstream.reports import render


class RecordsTraining:
    """Records a few steps of a trainer and tells what holds them back when training ends.

    Args:
        folder: see ``slipstream.profile``.
        steps: see there.
        quiet: tell nothing; ``recorded.report`` holds the diagnosis.
    """

    def __init__(self, folder: str | Path | None = None, steps: int = STEPS, quiet: bool = False) -> None:
        self.recorded: Profile | None = None
        """The recording, once training has begun."""
        self._folder = folder
        self._steps = steps
        self._quiet = quiet
        self._ended = False

    def begin(self) -> None:
        """Begin to listen."""
        self.recorded = profile(self._folder, steps=self._steps)
        self.recorded.__enter__()
        self._ended = False

    def end(self, leads: bool) -> None:
        """Write what was recorded, and tell.

        Args:
            leads: whether this is the process of several that prints.
        """
        if self.recorded is None or self._ended:
            return
        self._ended = True
        self.recorded.__exit__(None, None, None)
        if self._quiet or not leads:
            return
        try:
            print(render(self.recorded.report, "text"))
        except BadInput as reason:
            print(f"slipstream: {reason}")
