"""Reads several recordings at once, each large one in a process of its own.

Processes are started as programs, not through ``multiprocessing``: its workers import the user's script again, and a
training script that calls ``slipstream.load`` without a guard would start to train once per worker. What was read
comes back as Parquet in a temporary folder. Whatever keeps such a process from answering, its recording is read in
this one.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from slipstream.ingest.location import Recording
from slipstream.ingest.reading import read
from slipstream.ingest.remote import is_remote
from slipstream.ingest.run_folder import TRACE
from slipstream.ingest.table_cache import FOLDER, INDEX, keep, left_by_process
from slipstream.model import BadInput, MissingInput, NotATrace
from slipstream.store import RunFolder, Trace

LARGE_BYTES = 5_000_000
"""A process pays for a compressed file of this size: it takes a second and more, and a process half of one to start."""
COMPRESSION = 20
"""How many times smaller traces become by compression."""
MOST_PROCESSES = 8
REFUSAL = "refusal.json"
REFUSALS = {kind.__name__: kind for kind in (BadInput, MissingInput, NotATrace)}


def read_all(recordings: Sequence[Recording], large_bytes: int = LARGE_BYTES) -> list[Trace]:
    """Read recordings, large ones at the same time.

    Args:
        recordings: as found by ``locate``.
        large_bytes: compressed size from which a recording gets a process of its own.
    Returns:
        One trace each, in their order; the same as ``read`` gives one after the other.
    Raises:
        BadInput: the first that cannot be read, whichever process found out.
    """
    large = [place for place, recording in enumerate(recordings) if _size(recording) >= large_bytes]
    processes = min(_cores(), MOST_PROCESSES, len(large))
    if processes < 2 or not Path(sys.executable or "").name.startswith(("python", "pypy")):
        return [read(recording) for recording in recordings]
    with tempfile.TemporaryDirectory(prefix="slipstream-") as name:
        pool = ThreadPoolExecutor(processes, thread_name_prefix="slipstream-read")
        try:
            ahead: dict[int, Future[Trace | None]] = {
                place: pool.submit(_read_elsewhere, recordings[place], Path(name, str(place)), _cores() // processes)
                for place in large
            }
            return [_one(recording, ahead.get(place)) for place, recording in enumerate(recordings)]
        finally:
            pool.shutdown(cancel_futures=True)


def _one(recording: Recording, ahead: Future[Trace | None] | None) -> Trace:
    found = ahead.result() if ahead is not None else None
    return read(recording) if found is None else found


def _size(recording: Recording) -> int:
    """Compressed bytes that have to be read; 0 for what has been read before and for what does not lie here."""
    if is_remote(recording.path):
        return 0
    file = Path(recording.path)
    if recording.format == "run_folder":
        place = RunFolder(file).rank(recording.rank or 0)
        if (place / FOLDER / INDEX).exists():
            return 0
        file = place / TRACE
    try:
        return file.stat().st_size // (1 if file.suffix.lower() in (".gz", ".zst") else COMPRESSION)
    except OSError:
        return 0


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_elsewhere(recording: Recording, folder: Path, threads: int) -> Trace | None:
    """What another process read; None where it gave no answer.

    Raises:
        BadInput: what it raised.
    """
    environment = os.environ | {"POLARS_MAX_THREADS": str(max(1, threads))}
    try:
        folder.mkdir()
        # -P: modules of the current folder must not stand in for installed ones.
        what = msgspec.json.encode(recording).decode()
        command = [sys.executable, "-P", "-m", "slipstream.ingest", what, str(folder)]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            return None
        if not (folder / REFUSAL).exists():
            return left_by_process(folder)
        kind, message = msgspec.json.decode((folder / REFUSAL).read_bytes(), type=tuple[str, str])
    except (OSError, ValueError):  # no process, no room for its answer, or a path that is no text
        return None
    raise REFUSALS[kind](message)


def leave(recording: Recording, folder: Path) -> None:
    """Read a recording and leave what came of it for the process that waits for it.

    Args:
        recording: which.
        folder: where its tables go, or the refusal.
    """
    try:
        trace = read(recording)
    except BadInput as error:
        (folder / REFUSAL).write_bytes(msgspec.json.encode((type(error).__name__, str(error))))
    else:
        keep(folder, {}, trace)
