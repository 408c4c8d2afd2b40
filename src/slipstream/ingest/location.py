"""Finds the recordings under a path."""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from slipstream.ingest.remote import RemotePlace, is_remote
from slipstream.model import MissingInput, NotATrace, TraceFormat

TRACE_NAME = re.compile(r"\.json(?:\.gz|\.zst)?$", re.IGNORECASE)
TENSORBOARD_NAME = re.compile(r"\.pt\.trace\.json(?:\.gz|\.zst)?$", re.IGNORECASE)
OTHER_JSON = frozenset({"run.json", "findings.json", "tables.json", "places.json.gz"})
RANK_FOLDER = re.compile(r"rank(\d{1,8})$")
RANK = re.compile(r"(?<![a-z])rank[_\-.=]?(\d+)", re.IGNORECASE)


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One recording that was found: a trace file, or one rank of a run folder."""

    path: str
    """The trace file; of a run folder the folder itself."""
    format: TraceFormat
    rank: int | None = None
    """Rank by the name of the file or folder; None where the name tells none."""
    empty_beside: tuple[str, ...] = ()
    """Files of the same directory that are named like traces and hold nothing."""


def locate(path: str | Path) -> list[Recording]:
    """Find the recordings under a path.

    Args:
        path: trace file, TensorBoard log directory, run folder or directory of ranks; local, or remote as an
            fsspec address.
    Returns:
        The recordings in the order of their ranks, then of their names; at least one.
    Raises:
        MissingInput: nothing is there.
        NotATrace: a directory without a trace.
        MissingDependency: the address needs a package that is not installed.
        BadInput: the address cannot be reached.
    """
    if not str(path).strip():
        raise MissingInput("no path was given: name a trace file, a run folder or a directory of ranks.")
    place = RemotePlace(str(path)) if is_remote(str(path)) else _Local(str(path))
    if place.is_file():
        if str(path).endswith(".tmp"):
            raise NotATrace(f"{path} is a trace that was never finished: the job died while writing. Record it again.")
        return [Recording(path=str(path), format="kineto", rank=_rank(str(path)))]
    if not place.is_dir():
        if place.exists(f"{path}.tmp"):
            raise NotATrace(f"{path} is missing; {path}.tmp shows that the job died while writing it. Record it again.")
        raise MissingInput(f"nothing is at {path}: check the path.")
    files = place.files()
    if "run.json" in files:
        return _run_folder(str(path), files)
    if (
        not is_remote(str(path))
        and (match := RANK_FOLDER.match(Path(path).name))
        and Path(path, "../run.json").is_file()
    ):
        return [Recording(path=str(Path(path).parent), format="run_folder", rank=int(match[1]))]
    runs = sorted({name.split("/")[0] for name in files if name.endswith("/run.json") and name.count("/") == 1})
    if runs:
        newest = f"{str(path).rstrip('/')}/{runs[-1]}"
        raise NotATrace(f"{path} holds {len(runs)} run folders: name one of them, such as {newest}.")
    traces = [name for name in files if TRACE_NAME.search(name) and name.split("/")[-1] not in OTHER_JSON]
    empty = tuple(name for name in traces if place.size(name) == 0)
    traces = [name for name in traces if name not in empty]
    tensorboard = [name for name in traces if TENSORBOARD_NAME.search(name)]
    found = tensorboard or [name for name in traces if place.looks_like_trace(name)]
    if not found:
        left = next((name for name in files if name.endswith(".json.tmp")), None)
        if left:
            raise NotATrace(f"{path} holds only {left}: the job died while writing its trace. Record it again.")
        if empty:
            raise NotATrace(
                f"{path} holds only empty files such as {empty[0]}: the job died too early. Record it again."
            )
        raise NotATrace(f"{path} holds no trace: name a directory with *.pt.trace.json(.gz) files or a single trace.")
    format_: TraceFormat = "tensorboard_dir" if tensorboard else "kineto"
    recordings = [
        Recording(path=place.join(name), format=format_, rank=_rank(name), empty_beside=empty) for name in found
    ]
    return sorted(recordings, key=_order)


def _run_folder(path: str, files: Iterable[str]) -> list[Recording]:
    matches = (re.match(r"rank(\d+)/", name) for name in files)
    ranks = sorted({int(match[1]) for match in matches if match})
    if not ranks:
        raise NotATrace(
            f"{path} is a run folder without a recording: the job ended before anything was measured. Run it again."
        )
    return [Recording(path=path, format="run_folder", rank=rank) for rank in ranks]


def _rank(name: str) -> int | None:
    found = RANK.findall(name)
    return int(found[-1]) if found and len(found[-1]) < 9 else None


def _order(recording: Recording) -> tuple[bool, int, str]:
    return recording.rank is None, recording.rank or 0, recording.path


class _Local:
    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def is_file(self) -> bool:
        return self.path.is_file()

    def is_dir(self) -> bool:
        return self.path.is_dir()

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def files(self) -> list[str]:
        return sorted(file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file())

    def join(self, name: str) -> str:
        return str(self.path / name)

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def looks_like_trace(self, name: str) -> bool:
        """Whether it can be a trace at all: other JSON beside traces is passed over."""
        return not _is_small_other_json(self.path / name)


def _is_small_other_json(file: Path) -> bool:
    if file.stat().st_size > 1_000_000 or file.suffix != ".json":
        return False
    text = file.read_bytes()
    return text.lstrip()[:1] in (b"{", b"[") and b'"ph"' not in text and b"traceEvents" not in text


def names_under(path: str) -> list[str]:
    """Everything under a directory that can be opened by itself: run folders, and traces of PyTorch's handler.

    Args:
        path: directory, local or remote as an fsspec address.
    Returns:
        Names relative to it, in order; ``.`` for a run folder that is the directory itself. Empty: there is nothing.
    Raises:
        MissingDependency: the address needs a package that is not installed.
        BadInput: the address cannot be reached.
    """
    place = RemotePlace(path) if is_remote(path) else _Local(path)
    if not place.is_dir():
        return []
    files = place.files()
    folders = {name.rpartition("/")[0] or "." for name in files if name.split("/")[-1] == "run.json"}
    traces = [
        name
        for name in files
        if TENSORBOARD_NAME.search(name) and not any(above in folders for above in _folders_above(name))
    ]
    return sorted([*folders, *traces])


def _folders_above(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return [".", *("/".join(parts[:count]) for count in range(1, len(parts) + 1))]
