"""Takes user names, hosts, home directories and absolute paths out of what is handed to others.

Names are known from this machine and learnt from the document itself: from home directories, from the worker
name in the file name of a TensorBoard trace, from the paths of places. What is learnt is replaced everywhere.
"""

import contextlib
import getpass
import re
import socket
from pathlib import Path
from typing import Any

import msgspec

from slipstream.model import Diagnosis
from slipstream.store import Report

USER, HOST, PATH = "<user>", "<host>", "<path>"

_FIXED_WORDS = frozenset(
    {
        *("kind", "format", "device_kind", "grade", "cause", "part", "code"),
        *("id", "precision", "fix_class", "unit", "treatment", "origin_ns"),
    }
)
"""Fields whose values are words of the contract."""
_NOT_PERSONAL = frozenset(
    ("root", "user", "users", "runner", "ubuntu", "admin", "app", "home", "jovyan", "default", "shared", "public")
)
_SHORTEST_NAME = 3
"""Shorter names are replaced in home directories only: as words they would hit too much else."""

_HOME = re.compile(r"(?:^|[/\\])(?:home|[Uu]sers)[/\\]([^/\\\s:'\"<>]+)")
_WORKER_FILE = re.compile(r"^(?P<host>.+?)_(?P<pid>\d+)\.(?P<rest>(?:\d+\.)?pt\.trace\.json.*)$")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.+-])")
# Links to web pages are advice, not places of the user; every other scheme names storage.
_URI = re.compile(r"\b(?!https?://)[a-z][a-z0-9+.-]*://(?:[^\s'\"]*/)?([^\s/'\"]*)")
_PART = r"[^\s/\\:;,'\"()<>|]"
_QUOTED = re.compile(r"(?<=['\"])/(?!(?:dev|proc|sys)/)(?:[^/'\"\n]+/)+(?=[^/'\"\n]*['\"])")
# /dev/shm and the like are the same on every machine.
_POSIX = re.compile(rf"(?<![\w./:>)\]\\-])/(?!(?:dev|proc|sys)/)(?:{_PART}+/)+({_PART}*)")
_WINDOWS = re.compile(rf"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\)(?:{_PART}+[\\/])*({_PART}*)")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Names that must not be exported."""

    users: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


def this_machine() -> Identity:
    """The user and the host that slipstream runs on."""
    users = {Path.home().name}
    # A container's user may have no name at all; then there is none to give away.
    with contextlib.suppress(OSError, KeyError, ImportError):
        users.add(getpass.getuser())
    host = socket.gethostname()
    return Identity(users=frozenset(users), hosts=frozenset({host, host.split(".")[0]}))


def redact(report: Report, identity: Identity | None = None) -> Report:
    """The same report with a redacted document; its tables stay as they are and are never exported.

    Args:
        report: what is about to be exported.
        identity: names to replace besides those learnt from the document; None: those of this machine.
    """
    document = redact_diagnosis(report.diagnosis, identity or this_machine())
    return Report(diagnosis=document, tables=report.tables)


def redact_diagnosis(document: Diagnosis, identity: Identity) -> Diagnosis:
    """Replace what tells who and where; figures, names of ops and the user's own file names stay."""
    words = _Words(document, identity)
    return msgspec.convert(words.clean(msgspec.to_builtins(document)), Diagnosis)


class _Words:
    """What to replace in one document."""

    def __init__(self, document: Diagnosis, identity: Identity) -> None:
        strings = list(_strings(msgspec.to_builtins(document)))
        users = set(identity.users) | {match.group(1) for text in strings for match in _HOME.finditer(text)}
        hosts = set(identity.hosts)
        worker = _WORKER_FILE.match(_last(document.source.path))
        if worker is not None:
            hosts.add(worker["host"])
        hosts.discard("localhost")
        self.home_names = users
        self.words = {name: HOST for name in hosts if len(name) >= _SHORTEST_NAME}
        self.words |= {n: USER for n in users if len(n) >= _SHORTEST_NAME and n.lower() not in _NOT_PERSONAL}
        # Longest first: "node7.example.org" before "node7".
        names = sorted(self.words, key=lambda name: (-len(name), name))
        joined = "|".join(map(re.escape, names))
        self.pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{joined})(?![A-Za-z0-9])") if names else None
        # Folders with spaces end where no pattern can know; these are known from fields that hold a path alone.
        whole = {document.source.path, *_files(msgspec.to_builtins(document))}
        self.folders = sorted({_folder(path) for path in whole} - {""}, key=len, reverse=True)

    def clean(self, value: Any, key: str = "") -> Any:
        """The same value with its strings cleaned."""
        if isinstance(value, dict):
            return {name: self.clean(item, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean(item, key) for item in value]
        if not isinstance(value, str) or key in _FIXED_WORDS:
            return value
        return self.text(value)

    def text(self, text: str) -> str:
        """One string, cleaned."""
        for folder in self.folders:
            text = text.replace(folder, PATH + "/")
        text = _QUOTED.sub(f"{PATH}/", text)
        text = _URI.sub(rf"{PATH}/\1", text)
        text = _WINDOWS.sub(rf"{PATH}/\1", text)
        text = _POSIX.sub(rf"{PATH}/\1", text)
        text = _HOME.sub(lambda match: match.group().removesuffix(match.group(1)) + USER, text)
        text = _ADDRESS.sub(HOST, _MAIL.sub(f"{USER}@{HOST}", text))
        return self.pattern.sub(lambda match: self.words[match.group()], text) if self.pattern else text


def _strings(value: Any) -> Any:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _files(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("file"), str):
            yield value["file"]
        for item in value.values():
            yield from _files(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _files(item)


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _folder(path: str) -> str:
    """The folder of an absolute path or address with its last separator; empty for a relative one."""
    absolute = path.startswith(("/", "\\\\")) or re.match(r"[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]*://", path)
    folder = path[: len(path) - len(_last(path))]
    return folder if absolute and len(folder) > 1 else ""
