"""The two recordings: the window with everything, and the cheap one of the step that is traced line by line."""

import contextlib
import gzip
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch.autograd import profiler as autograd_profiler
from torch.profiler.profiler import _KinetoProfile

from slipstream.capture.devices import cuda_in_use, xpu_in_use
from slipstream.capture.user_code import Place, TraceNames

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
        self._profiler = _KinetoProfile(
            activities=_activities() if everything else [torch.profiler.ProfilerActivity.CPU],
            record_shapes=everything,
            with_stack=self.with_stack,
            profile_memory=everything and cuda_in_use(),
            experimental_config=_experimental() if everything else None,
        )
        self._mark: Any = None
        self._running: tuple[Place, ...] = ()

    def prepare(self) -> None:
        """Load what recording needs, so that the first recorded step does not pay for it."""
        with _ours():
            self._profiler.prepare_trace()

    def start(self, running: Iterable[Place] = ()) -> None:
        """Begin to record.

        Args:
            running: calls of the user's code that are under way, each with its current line. The profiler names
                them by that line instead of that of their def, as it names all others; the file is put right.
        """
        self._running = tuple(running)
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
        names = TraceNames()
        renamed = {
            f'"{names(code.co_filename)}({line}): {code.co_name}"'.encode(): (
                f'"{names(code.co_filename)}({code.co_firstlineno}): {code.co_name}"'.encode()
            )
            for code, line in self._running
        }
        if unfinished is not None:
            renamed[b'"ProfilerStep#%d"' % unfinished] = b'"unfinished step %d"' % unfinished
        raw = path.with_name(f"{path.name}.raw.{os.getpid()}")
        part = path.with_name(f"{path.name}.part.{os.getpid()}")
        try:
            self._profiler.export_chrome_trace(str(raw))
            with raw.open("rb") as source, gzip.open(part, "wb", compresslevel=COMPRESSION) as target:
                for chunk in _chunks(source, renamed):
                    target.write(chunk)
            part.replace(path)
        finally:
            raw.unlink(missing_ok=True)
            part.unlink(missing_ok=True)


def _chunks(source: BinaryIO, renamed: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """The bytes of a trace, with some names replaced wherever they stand."""
    longest = max(map(len, renamed), default=1)
    rest = b""
    while chunk := source.read(CHUNK_BYTES):
        chunk = rest + chunk
        for name, other in renamed.items():
            chunk = chunk.replace(name, other)
        cut = max(len(chunk) - longest + 1, 0)  # a name may begin here and end in the next chunk
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
    return bool(torch._C._autograd._profiler_enabled())


def inside_backward() -> bool:
    """Whether this thread is inside a backward pass, where a profiler must not be started or stopped."""
    return bool(torch._C._current_graph_task_id() != -1)


def _activities() -> list[Any]:
    known = torch.profiler.ProfilerActivity
    activities = [known.CPU]
    if cuda_in_use():
        activities.append(known.CUDA)
    if xpu_in_use():
        activities.append(known.XPU)
    return activities


def _experimental() -> Any:
    """On CUDA also who waits for which event, which costs little and tells why a stream stood still."""
    if not cuda_in_use() or torch.version.hip is not None:
        return None
    return torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
