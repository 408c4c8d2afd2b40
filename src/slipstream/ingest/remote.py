"""Files behind an address, through fsspec; what keeps them from being reached is told in one sentence."""

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from slipstream.model import BadInput, MissingDependency, MissingInput, SlipstreamError

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
    with reaching(path):
        try:
            system, root = fsspec.core.url_to_fs(path)
        except ImportError as error:
            packages = BACKENDS.get(protocol)
            if packages is None:
                raise MissingDependency(f"reading {protocol}:// needs a further package: {error}") from error
            raise MissingDependency(
                f"reading {protocol}:// needs {' and '.join(packages)}: pip install {' '.join(packages)}"
            ) from error
        except ValueError as error:
            raise BadInput(f"{path} cannot be read: {_words(error)}.") from error
    return system, root


def opened_remote(path: str) -> BinaryIO:
    """A remote file, opened for reading bytes.

    Raises:
        MissingDependency: the protocol needs a package that is not installed.
        BadInput: no such protocol, or it cannot be reached.
    """
    system, root = file_system(path)
    with reaching(path):
        file: BinaryIO = system.open(root, "rb")
    return file


@contextlib.contextmanager
def reaching(path: str) -> Iterator[None]:
    """Tell what keeps an address from being reached: every backend's errors of this sort are ``OSError``.

    Args:
        path: the address, for the message.
    Raises:
        MissingInput: nothing is there.
        BadInput: it cannot be reached or may not be read.
    """
    try:
        yield
    except SlipstreamError:
        raise
    except FileNotFoundError as error:
        raise MissingInput(f"nothing is at {path}: check the address.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be reached: {_words(error)}.") from error


def _words(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
