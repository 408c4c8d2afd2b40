"""The two recordings: the window with everything, and the cheap one of the step that is traced line by line."""

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch.autograd import profiler as autograd_profiler

COMPRESSION = 1
"""The file is written while the job waits: the fastest level."""
CHUNK_BYTES = 1 << 22


class Recording:
    """One recording by ``torch.profiler``, started and stopped by hand on one thread.

    Args:
        everything: shapes, stacks and memory and the device besides the ops of the host.
    """

    def __init__(self, everything: bool) -> None:
        # Another profiling function (cProfile) would be pushed out by the profiler's own.
        self.with_stack = everything and sys.getprofile() is None
        self._profiler = torch.profiler._KinetoProfile(
            activities=_activities() if everything else [torch.profiler.ProfilerActivity.CPU],
            record_shapes=everything,
            with_stack=self.with_stack,
            profile_memory=everything and torch.cuda.is_initialized(),
            experimental_config=_experimental() if everything else None,
        )
        self._mark: Any = None

    def prepare(self) -> None:
        """Load what recording needs, so that the first recorded step does not pay for it."""
        with _ours():
            self._profiler.prepare_trace()

    def start(self) -> None:
        """Begin to record."""
        self._profiler.start_trace()

    def mark(self, number: int) -> None:
        """Begin the step of that number; the one before ends."""
        self.unmark()
        self._mark = autograd_profiler.record_function(f"ProfilerStep#{number}")
        self._mark.__enter__()

    def unmark(self) -> None:
        """End the current step."""
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def stop(self) -> None:
        """Stop recording."""
        self.unmark()
        self._profiler.stop_trace()

    def export(self, path: Path, unfinished: int | None) -> None:
        """Write what was recorded, compressed, in one go: a killed job leaves the whole file or none.

        Args:
            path: the file to write.
            unfinished: number of a step that was marked but not completed; None: there is none. Its mark gets
                another name: it would pass for a step.
        """
        raw = path.with_name(f"{path.name}.raw.{os.getpid()}")
        part = path.with_name(f"{path.name}.part.{os.getpid()}")
        try:
            self._profiler.export_chrome_trace(str(raw))
            with raw.open("rb") as source, gzip.open(part, "wb", compresslevel=COMPRESSION) as target:
                for chunk in _chunks(source, unfinished):
                    target.write(chunk)
            part.replace(path)
        finally:
            raw.unlink(missing_ok=True)
            part.unlink(missing_ok=True)


def _chunks(source: BinaryIO, unfinished: int | None) -> Iterator[bytes]:
    """The bytes of a trace, with the mark of an unfinished step renamed wherever it stands."""
    mark = b"" if unfinished is None else b'"ProfilerStep#%d"' % unfinished
    renamed = b'"unfinished step %d"' % (unfinished or 0)
    rest = b""
    while chunk := source.read(CHUNK_BYTES):
        chunk = rest + chunk
        if mark:
            chunk = chunk.replace(mark, renamed)
            cut = max(len(chunk) - len(mark) + 1, 0)  # it may begin here and end in the next chunk
            chunk, rest = chunk[:cut], chunk[cut:]
        yield chunk
    yield rest


_ours_is_starting = False


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    global _ours_is_starting
    _ours_is_starting = True
    try:
        yield
    finally:
        _ours_is_starting = False


def is_ours() -> bool:
    """Whether the profiler that is being prepared right now is slipstream's."""
    return _ours_is_starting


def foreign_is_running() -> bool:
    """Whether some profiler is running; to be asked while none of ours is."""
    return bool(torch.autograd._profiler_enabled())


def inside_backward() -> bool:
    """Whether this thread is inside a backward pass, where a profiler must not be started or stopped."""
    return bool(torch._C._current_graph_task_id() != -1)


def _activities() -> list[Any]:
    known = torch.profiler.ProfilerActivity
    activities = [known.CPU]
    if torch.cuda.is_initialized():
        activities.append(known.CUDA)
    if hasattr(torch, "xpu") and torch.xpu.is_initialized():
        activities.append(known.XPU)
    return activities


def _experimental() -> Any:
    """On CUDA also who waits for which event, which costs little and tells why a stream stood still."""
    if not torch.cuda.is_initialized() or torch.version.hip is not None:
        return None
    return torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
