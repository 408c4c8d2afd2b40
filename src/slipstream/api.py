"""What ``import slipstream`` offers."""

import sys
import types
from pathlib import Path
from typing import Self

from slipstream.analysis import tables_of
from slipstream.analysis.diff import difference
from slipstream.capture.job import STEPS
from slipstream.ingest import locate, read_all
from slipstream.model import BadInput, Difference, NotEnoughData
from slipstream.reports import render
from slipstream.rules.diagnosis import diagnose
from slipstream.store import Report, Trace

__all__ = ["Profile", "diagnose", "diff", "load", "profile", "render"]


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


class Profile:
    """A recording of this process, made by ``profile``; a context manager."""

    def __init__(self, folder: Path, steps: int, warmup: int | None, places: bool) -> None:
        from slipstream.capture.in_process import InProcess  # only where there is torch

        self._recording = InProcess(folder, steps, warmup, places)
        self._report: Report | None = None

    def __enter__(self) -> Self:
        self._recording.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self._recording.end()

    def step(self) -> None:
        """Say that a training step has ended. Needed only where no optimizer of ``torch.optim`` tells it."""
        self._recording.step(sys._getframe(1))

    @property
    def folder(self) -> Path:
        """The run folder: ``slipstream analyze`` and all other commands take it."""
        return self._recording.folder.root

    @property
    def outcome(self) -> str:
        """What became of the recording, in one sentence."""
        info = self._recording.info
        if info is None:
            return "not recorded here: slipstream run records this process already"
        return info.outcome or "the recording goes on"

    @property
    def report(self) -> Report:
        """The diagnosis of what was recorded, once the block has ended.

        Raises:
            BadInput: nothing was recorded, with the reason.
        """
        if self._report is None:
            if not any(self.folder.glob("rank*/trace.json*")):
                raise BadInput(f"there is no recording: {self.outcome}")
            loaded = load(self.folder)
            self._report = diagnose(loaded if isinstance(loaded, Trace) else loaded[0])
        return self._report


def profile(
    folder: str | Path | None = None, *, steps: int = STEPS, warmup: int | None = None, places: bool = True
) -> Profile:
    """Record a few training steps of this process.

    ::

        with slipstream.profile() as recorded:
            train(model, loader)
        print(slipstream.render(recorded.report))

    Steps end where an optimizer has stepped, from its second step on; where there is none of ``torch.optim``, call
    ``recorded.step()`` at the end of each. Recording is over after ``steps`` of them, whatever else the block does.
    Under ``slipstream run`` the block does nothing: the run is recorded already.

    Args:
        folder: the run folder, empty or missing; None: ``slipstream-runs/<UTC time>-<script>``.
        steps: to record.
        warmup: steps before that; None: until step times are steady.
        places: whether one more step is traced line by line, so that findings name statements.
    """
    from slipstream.capture.launcher import RUNS, new_folder

    name = Path(sys.argv[0]).stem or "session"
    return Profile(Path(folder) if folder is not None else new_folder(RUNS, name), steps, warmup, places)
