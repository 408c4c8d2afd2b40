"""The part that ends a job once its recording is complete: a tuning needs the window, not the whole training."""

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

from slipstream.capture.job import Job

PART = "slipstream.tuning.leaving"
_MORE_STEPS = 3
"""Steps after the window that are let pass, for the one that is traced line by line among them."""


def install(job: Job) -> None:
    """Count steps after the window."""
    from slipstream.capture.hooks import watch_training

    watch_training(_Leaver(Path(job.folder)))


class _Leaver:
    """Looks for the trace after every step."""

    def __init__(self, folder: Path) -> None:
        self.off = False
        self.inside_optimizer = False
        self.optimizer_calls = 0
        self._folder = folder
        self._steps = 0

    def optimizer_stepped(
        self, optimizer: object, began_ns: int, ended_ns: int, frame: FrameType | None, skipped: bool | None
    ) -> None:
        """End the process when the window has been written for some steps."""
        if self._steps or any(self._folder.glob("rank*/trace.json*")):
            self._steps += 1
        if self._steps > _MORE_STEPS:
            self.off = True
            os.kill(os.getpid(), signal.SIGTERM)  # the recording writes what is left, then lets it end the process

    def fetch_begins(self) -> None:
        """Nothing to do."""

    def fetched(
        self, iterator: Any, batch: object, first: bool, began_ns: int, ended_ns: int, frame: FrameType | None
    ) -> None:
        """Nothing to do."""

    def went_backward(self, began_ns: int, ended_ns: int, frame: FrameType | None) -> None:
        """Nothing to do."""
