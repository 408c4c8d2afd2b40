"""Files behind an address, through fsspec; what keeps them from being reached is told in one sentence."""

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from slipstream.model import BadInput, MissingDependency, MissingInput

BACKENDS = {
    "s3": ("s3fs",),
    "s3a": ("s3fs",),
    "gs": ("gcsfs",),
    "gcs": ("gcsfs",),
    "http": ("aiohttp", "requests"),
    "https": ("aiohttp", "requests"),
    "hf": ("huggingface_hub",),
    "abfs": ("adlfs",),
    "abfss": ("adlfs",),
    "az": ("adlfs",),
    "sftp": ("paramiko",),
    "ssh": ("paramiko",),
    "smb": ("smbprotocol",),
    "oss": ("ossfs",),
    "webhdfs": ("requests",),
}
"""Packages with which fsspec reads a protocol, for the most usual ones; for others its own words are told."""


def is_remote(path: str) -> bool:
    """Whether a path names something behind fsspec, such as ``s3://bucket/trace.json.gz``."""
    return "://" in path


def file_system(path: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path within it.

    Args:
        path: such as ``s3://bucket/run``.
    Raises:
        MissingDependency: the protocol needs a package that is not installed.
        BadInput: no such protocol, or it cannot be reached.
    """
    import fsspec

    protocol = path.split("://")[0].split("::")[-1]
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        packages = BACKENDS.get(protocol)
        if packages is None:
            raise MissingDependency(f"reading {protocol}:// needs a further package: {_words(error)}") from error
        raise MissingDependency(
            f"reading {protocol}:// needs {' and '.join(packages)}: pip install {' '.join(packages)}"
        ) from error
    except ValueError as error:
        raise BadInput(f"{path} cannot be read: {_words(error)}.") from error
    with reaching(path):
        system, root = fsspec.core.url_to_fs(path)
    return system, root


@contextlib.contextmanager
def reaching(path: str) -> Iterator[None]:
    """Tell what keeps an address from being reached; holds calls into a backend and nothing else.

    Args:
        path: the address, for the message.
    Raises:
        MissingInput: nothing is there.
        BadInput: it cannot be reached or may not be read.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise MissingInput(f"nothing is at {path}: check the address.") from error
    except Exception as error:
        # No type is common to what the backends' network libraries raise: some derive from OSError, some do not.
        raise BadInput(f"{path} cannot be reached: {_words(error)}.") from error


class RemoteFile:
    """A file behind an address, read in pieces; over a network every one of them can fail.

    Args:
        path: such as ``s3://bucket/trace.json.gz``.
    Raises:
        MissingDependency: the protocol needs a package that is not installed.
        BadInput: no such protocol, or it cannot be reached; so do reading and seeking.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        system, root = file_system(path)
        with reaching(path):
            self._file: BinaryIO = system.open(root, "rb")

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many; none at the end."""
        with reaching(self._path):
            return self._file.read(size)

    def seek(self, offset: int, /) -> int:
        """Go on from there."""
        with reaching(self._path):
            return self._file.seek(offset)

    def __enter__(self) -> "RemoteFile":
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()


class RemotePlace:
    """What lies under an address.

    Args:
        path: such as ``s3://bucket/run``.
    Raises:
        MissingDependency: the protocol needs a package that is not installed.
        BadInput: no such protocol, or it cannot be reached; so does every question.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._system, self._root = file_system(path)
        self._kind: str | None = None
        # Not isfile and isdir: of many backends they answer "no" to whatever goes wrong.
        with contextlib.suppress(MissingInput), reaching(path):
            self._kind = str(self._system.info(self._root)["type"])

    def is_file(self) -> bool:
        """Whether the address itself is a file."""
        return self._kind == "file"

    def is_dir(self) -> bool:
        """Whether files lie under it."""
        return self._kind == "directory"

    def exists(self, path: str) -> bool:
        """Whether anything is at another address of the same file system."""
        with reaching(path):
            return bool(self._system.exists(path))

    def files(self) -> list[str]:
        """All files under it, by their names from there."""
        with reaching(self._path):
            found: list[str] = self._system.find(self._root)
        return sorted(str(PurePosixPath(file).relative_to(self._root)) for file in found)

    def join(self, name: str) -> str:
        """Address of one of its files."""
        return f"{self._path.rstrip('/')}/{name}"

    def size(self, name: str) -> int:
        """Bytes of one of its files; 0 where the backend does not tell."""
        with reaching(self._path):
            return int(self._system.size(f"{self._root.rstrip('/')}/{name}") or 0)

    def looks_like_trace(self, name: str) -> bool:
        """Whether a file can be a trace at all: to look into it would be to fetch it."""
        return True


def copied(path: str, rank: int, to: Path) -> None:
    """Fetch what a run folder holds of one rank.

    Args:
        path: address of the run folder.
        rank: which.
        to: an empty folder.
    Raises:
        MissingInput: no such run folder or rank.
        BadInput: it cannot be reached.
    """
    system, root = file_system(path)
    with reaching(path):
        names = system.find(f"{root}/rank{rank}", maxdepth=1)
    (to / f"rank{rank}").mkdir()
    for name in (f"{root}/run.json", *names):
        target = to / "run.json" if name == f"{root}/run.json" else to / f"rank{rank}" / name.split("/")[-1]
        with reaching(path):
            system.get_file(name, str(target))


def _words(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
