"""Keeps what was read from a rank's files as Parquet beside them, so that the next time is quick.

A cache is valid for the very files it was made from (by size and time of change) and this version of slipstream.
"""

from pathlib import Path

import msgspec
import polars as pl

from slipstream._version import __version__
from slipstream.model import Integrity, Source
from slipstream.store import DECLARED, RECORDED, Trace

FOLDER = "tables"
INDEX = "tables.json"

Stamps = dict[str, tuple[int, int]]
"""Name of a file -> its size in bytes and its time of change in ns."""


class CacheIndex(msgspec.Struct, frozen=True, kw_only=True):
    """What ``tables.json`` holds."""

    version: str
    files: Stamps
    source: Source
    integrity: Integrity
    element_count: int
    tables: tuple[str, ...]
    packages: tuple[str, ...] | None = None


def stamps(folder: Path, names: tuple[str, ...]) -> Stamps:
    """Sizes and times of those files that exist."""
    found: Stamps = {}
    for name in names:
        file = folder / name
        if file.is_file():
            facts = file.stat()
            found[name] = (facts.st_size, facts.st_mtime_ns)
    return found


def cached(folder: Path, files: Stamps) -> Trace | None:
    """What was read from these files before; None when nothing valid is there.

    Args:
        folder: folder of one rank.
        files: its files as they are now.
    """
    try:
        index = msgspec.json.decode((folder / FOLDER / INDEX).read_bytes(), type=CacheIndex)
        if index.version != __version__ or index.files != files:
            return None
        frames = {name: pl.read_parquet(folder / FOLDER / f"{name}.parquet", glob=False) for name in index.tables}
        tables = {name: DECLARED[name].frame(frame) for name, frame in frames.items()}
    except (OSError, msgspec.DecodeError, pl.exceptions.PolarsError, KeyError, ValueError):
        # A cache is only ever a copy: whatever is wrong with it, the files are read again.
        return None
    packages = None if index.packages is None else frozenset(index.packages)
    return Trace(index.source, index.integrity, tables, index.element_count, packages)


def keep(folder: Path, files: Stamps, trace: Trace) -> None:
    """Write the tables of a trace; a folder that cannot be written to stays without a cache.

    Args:
        folder: folder of one rank.
        files: the files the trace was read from.
        trace: what was read.
    """
    frames = {name: trace.table(name) for name in trace}
    # A recorded table without rows is there anyway; a measured one would read as "not measured" if it were left out.
    always = {table.name for table in RECORDED}
    tables = {name: frame for name, frame in frames.items() if frame.height or name not in always}
    index = CacheIndex(
        version=__version__,
        files=files,
        source=trace.source,
        integrity=trace.integrity,
        element_count=trace.element_count,
        tables=tuple(tables),
        packages=None if trace.packages is None else tuple(sorted(trace.packages)),
    )
    place = folder / FOLDER
    try:
        place.mkdir(exist_ok=True)
        (place / INDEX).unlink(missing_ok=True)
        for name, frame in tables.items():
            frame.write_parquet(place / f"{name}.parquet", compression="lz4", statistics=False)
        part = place / f"{INDEX}.part"
        part.write_bytes(msgspec.json.encode(index))
        part.replace(place / INDEX)
    except OSError:
        return
