"""Opens a recording, wherever it lies."""

import tempfile
from pathlib import Path
from typing import BinaryIO

from slipstream.ingest.kineto import read_kineto
from slipstream.ingest.location import Recording, is_remote, locate
from slipstream.ingest.run_folder import read_run_folder
from slipstream.model import BadInput, MissingInput
from slipstream.store import Trace


def read(recording: Recording | str | Path) -> Trace:
    """Read one recording into tables.

    Args:
        recording: as found by ``locate``, or a path under which exactly one recording lies.
    Returns:
        Its tables; what was repaired or is doubtful is told in ``integrity``.
    Raises:
        MissingInput: nothing is there.
        NotATrace: not one complete event in it.
        BadInput: several recordings under the path, or processes mixed in one file.
    """
    if not isinstance(recording, Recording):
        found = locate(recording)
        if len(found) > 1:
            raise BadInput(f"{recording} holds {len(found)} recordings: name one of them, such as {found[0].path}.")
        recording = found[0]
    if recording.format == "run_folder":
        rank = recording.rank or 0
        if is_remote(recording.path):
            return _remote_run_folder(recording.path, rank)
        return read_run_folder(Path(recording.path), rank, recording.path)
    try:
        with opened(recording.path) as file:
            return read_kineto(file, recording.path, recording.format, recording.rank, recording.empty_beside)
    except FileNotFoundError as error:
        if isinstance(error, MissingInput):
            raise
        raise MissingInput(f"nothing is at {recording.path}: check the path.") from error
    except PermissionError as error:
        raise BadInput(f"{recording.path} may not be read: {error.strerror}.") from error


def opened(path: str) -> BinaryIO:
    """A file, local or remote, opened for reading bytes."""
    if is_remote(path):
        import fsspec

        file: BinaryIO = fsspec.open(path, "rb").open()
        return file
    return Path(path).open("rb")


def _remote_run_folder(path: str, rank: int) -> Trace:
    import fsspec

    system, root = fsspec.core.url_to_fs(path)
    with tempfile.TemporaryDirectory(prefix="slipstream-") as copy:
        system.get_file(f"{root}/run.json", f"{copy}/run.json")
        (Path(copy) / f"rank{rank}").mkdir()
        for file in system.find(f"{root}/rank{rank}", maxdepth=1):
            system.get_file(file, f"{copy}/rank{rank}/{file.split('/')[-1]}")
        return read_run_folder(Path(copy), rank, path)
