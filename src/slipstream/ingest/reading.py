"""Opens a recording, wherever it lies."""

import tempfile
from pathlib import Path
from typing import BinaryIO

from slipstream.ingest.kineto import read_kineto
from slipstream.ingest.location import Recording, locate
from slipstream.ingest.remote import RemoteFile, copied, is_remote
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
        BadInput: several recordings under the path, processes mixed in one file, or not to be reached.
        MissingDependency: the address needs a package that is not installed.
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
    with RemoteFile(recording.path) if is_remote(recording.path) else _local(recording.path) as file:
        return read_kineto(file, recording.path, recording.format, recording.rank, recording.empty_beside)


def _local(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise MissingInput(f"nothing is at {path}: check the path.") from error
    except PermissionError as error:
        raise BadInput(f"{path} may not be read: {error.strerror}.") from error


def _remote_run_folder(path: str, rank: int) -> Trace:
    with tempfile.TemporaryDirectory(prefix="slipstream-") as copy:
        copied(path, rank, Path(copy))
        return read_run_folder(Path(copy), rank, path)
