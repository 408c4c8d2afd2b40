"""Keeps what was read from a rank's files as Parquet beside them, so that the next time is quick.

A cache is valid for the very files it was made from (by size and time of change) and this version of slipstream.
Opening one reads no table: each is read when it is first asked for, and most jobs ask for a few.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import polars as pl

from slipstream._version import __version__
from slipstream.model import Integrity, Source
from slipstream.store import DECLARED, RECORDED, Deferred, Trace

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
    tables: dict[str, int]
    """Rows by name."""
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


UNREADABLE = (OSError, msgspec.DecodeError, pl.exceptions.PolarsError, KeyError, ValueError)
"""What a spoilt cache raises. A cache is only ever a copy: whatever is wrong with it, the files are read again."""


def cached(folder: Path, files: Stamps, read_again: Callable[[], Trace]) -> Trace | None:
    """What was read from these files before; None when nothing valid is there.

    Args:
        folder: folder of one rank; its tables are read when they are asked for.
        files: its files as they are now.
        read_again: reads the files; called when a table turns out to be spoilt.
    """
    index = _index(folder, files)
    if index is None:
        return None
    try:
        for name in index.tables:
            if pl.read_parquet_schema(folder / FOLDER / f"{name}.parquet").keys() != DECLARED[name].schema.keys():
                return None
    except UNREADABLE:
        return None
    tables = {
        name: Deferred(height=height, load=partial(_table, folder, name, read_again))
        for name, height in index.tables.items()
    }
    return _trace(index, tables)


def left_by_process(folder: Path) -> Trace | None:
    """What ``keep`` wrote for a process that waits for it, all tables read; None when it is not readable."""
    index = _index(folder, {})
    if index is None:
        return None
    try:
        return _trace(index, {name: _frame(folder, name) for name in index.tables})
    except UNREADABLE:
        return None


def _index(folder: Path, files: Stamps) -> CacheIndex | None:
    try:
        index = msgspec.json.decode((folder / FOLDER / INDEX).read_bytes(), type=CacheIndex)
    except UNREADABLE:
        return None
    return index if index.version == __version__ and index.files == files else None


def _trace(index: CacheIndex, tables: Mapping[str, pl.DataFrame | Deferred]) -> Trace:
    packages = None if index.packages is None else frozenset(index.packages)
    return Trace(index.source, index.integrity, tables, index.element_count, packages)


def _frame(folder: Path, name: str) -> pl.DataFrame:
    return DECLARED[name].frame(pl.read_parquet(folder / FOLDER / f"{name}.parquet", glob=False))


def _table(folder: Path, name: str, read_again: Callable[[], Trace]) -> pl.DataFrame:
    try:
        return _frame(folder, name)
    except UNREADABLE:
        with suppress(OSError):
            (folder / FOLDER / INDEX).unlink()  # the next one to open the folder reads its files and keeps them anew
        return read_again().table(name)


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
        tables={name: frame.height for name, frame in tables.items()},
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
