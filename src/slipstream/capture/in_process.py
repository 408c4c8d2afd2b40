"""A recording that a process makes of itself: the same hooks and the same run folder as under the launcher."""

import atexit
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import torch

from slipstream import __version__
from slipstream.capture import endings
from slipstream.capture.hooks import attach_hooks
from slipstream.capture.job import JOB_VARIABLE, STEPS, Job
from slipstream.capture.machine import host_facts, library_names
from slipstream.capture.outcomes import completed
from slipstream.capture.recorder import Recorder
from slipstream.capture.status import Seen, write_record
from slipstream.model import BadInput
from slipstream.store import RunFolder, RunInfo


class InProcess:
    """Records steps of the process that it is used in, between ``begin`` and ``end``.

    Args:
        folder: the run folder; must be empty or missing.
        steps: to record.
        warmup: steps before that; None: until step times are steady.
        places: whether one more step is traced line by line.
    """

    def __init__(self, folder: Path, steps: int = STEPS, warmup: int | None = None, places: bool = True) -> None:
        self.folder = RunFolder(folder.absolute())
        self.info: RunInfo | None = None
        """What ``run.json`` holds; None: another recording goes on, and this one stands back."""
        self._recorder = Recorder(
            Job(folder=str(self.folder.root), prefix=sys.prefix, parts=(), steps=steps, warmup=warmup, places=places)
        )
        self._options: dict[str, str | int | float | bool | None] = {
            "steps": steps,
            "warmup": warmup,
            "places": places,
        }
        self._detach: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Listen to the training from now on.

        Raises:
            BadInput: the folder is not empty.
            OSError: it cannot be made.
        """
        if os.environ.get(JOB_VARIABLE):
            return  # slipstream run records this process already
        root = self.folder.root
        root.mkdir(parents=True, exist_ok=True)
        if any(root.iterdir()) and "RANK" not in os.environ:
            raise BadInput(f"{root} is not empty: name another run folder, or remove it")
        self.info = RunInfo(
            command=[*sys.argv],
            working_directory=str(Path.cwd()),
            started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            slipstream_version=__version__,
            python_version=".".join(map(str, sys.version_info[:3])),
            host=host_facts(),
            options=self._options,
        )
        self.folder.write_info(self.info)
        write_record(root / "torch.json", Seen(torch_version=str(torch.__version__)))
        self._detach = attach_hooks(self._recorder)

    def step(self, frame: FrameType | None) -> None:
        """A training step has ended.

        Args:
            frame: who says so.
        """
        if self.info is not None:
            self._recorder.step_told(frame)

    def end(self) -> None:
        """Stop, write everything and take the hooks off."""
        if self.info is None:
            return
        recorder = self._recorder
        recorder.finish("the recorded block ended")
        self._detach()
        recorder.off = True
        atexit.unregister(recorder.finish)
        endings.forget()
        self.info = completed(self.info, self.folder, 0)
        self.info.packages = library_names(without=self.info.options.pop("user_package", None))  # type: ignore[arg-type]
        self.folder.write_info(self.info)
