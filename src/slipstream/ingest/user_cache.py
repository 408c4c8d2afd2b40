"""Keeps the tables of a large trace file in the user's cache folder, for commands that open one again and again.

A run folder has its cache inside. A trace file of somebody's may lie where nothing should be added, so its tables go to
``$XDG_CACHE_HOME/slipstream`` (``~/.cache/slipstream``), which never grows beyond a bound.
"""

import hashlib
import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from slipstream._version import __version__
from slipstream.ingest.location import Recording
from slipstream.ingest.reading import read
from slipstream.ingest.remote import is_remote
from slipstream.ingest.table_cache import Stamps, cached, keep, stamps
from slipstream.model import Diagnosis
from slipstream.store import Trace

MOST_BYTES = 5_000_000_000
"""The folder's bound; what was not used for longest goes first."""
WORTHWHILE_BYTES = 1_000_000
"""Smaller files are read as fast as their cache."""

DIAGNOSIS = "diagnosis.json"


class KeptDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ``diagnosis.json`` holds."""

    version: str
    files: Stamps
    diagnosis: Diagnosis


def open_kept(recording: Recording) -> Trace:
    """Read a recording, from the cache where it was read before.

    Args:
        recording: as found by ``locate``.
    Raises:
        BadInput: it cannot be read.
    """
    place = place_of(recording)
    if place is None:
        return read(recording)
    file = Path(recording.path)
    files = stamps(file.parent, (file.name,))
    fresh = cache(lambda: read(recording))
    known = cached(place, files, fresh)
    if known is not None:
        os.utime(place)
        return known
    trace = fresh()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return trace
    keep(place, files, trace)
    _make_room(place.parent, place)
    return trace


def kept_diagnosis(recording: Recording) -> Diagnosis | None:
    """The diagnosis that was kept of this very recording; None when there is none."""
    place = place_of(recording)
    if place is None:
        return None
    file = Path(recording.path)
    try:
        kept = msgspec.json.decode((place / DIAGNOSIS).read_bytes(), type=KeptDiagnosis)
    except (OSError, msgspec.DecodeError):
        return None
    sound = kept.version == __version__ and kept.files == stamps(file.parent, (file.name,))
    return kept.diagnosis if sound else None


def keep_diagnosis(recording: Recording, diagnosis: Diagnosis) -> None:
    """Keep a diagnosis beside the tables; without a place for it nothing is kept."""
    place = place_of(recording)
    if place is None or not place.is_dir():
        return
    file = Path(recording.path)
    kept = KeptDiagnosis(version=__version__, files=stamps(file.parent, (file.name,)), diagnosis=diagnosis)
    with suppress(OSError):
        part = place / f"{DIAGNOSIS}.part"
        part.write_bytes(msgspec.json.encode(kept))
        part.replace(place / DIAGNOSIS)


def place_of(recording: Recording) -> Path | None:
    """The folder that is a recording's own in the cache; None for what is not kept there."""
    if recording.format == "run_folder" or is_remote(recording.path):
        return None
    file = Path(recording.path)
    try:
        if file.stat().st_size < WORTHWHILE_BYTES:
            return None
    except OSError:
        return None
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    key = f"{file.resolve()}\n{recording.rank}"
    return root / "slipstream" / hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:20]


def _make_room(root: Path, newest: Path) -> None:
    """Remove what was not used for longest until the folder is within its bound; the newest always stays."""
    try:
        sizes = {
            place: (place.stat().st_mtime_ns, sum(file.stat().st_size for file in place.rglob("*") if file.is_file()))
            for place in root.iterdir()
            if place.is_dir()
        }
    except OSError:
        return  # another process is clearing up
    total = sum(size for _, size in sizes.values())
    for place, (_, size) in sorted(sizes.items(), key=lambda item: item[1][0]):
        if total <= MOST_BYTES:
            return
        if place != newest:
            shutil.rmtree(place, ignore_errors=True)
            total -= size
