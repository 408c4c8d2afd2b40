"""Names of Python rows taken apart, and whose code each is."""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import polars as pl

from slipstream.analysis.known_packages import (
    AMBIGUOUS_PACKAGES,
    KNOWN_FILES,
    KNOWN_PACKAGES,
    STANDARD_DIRECTORIES,
    STANDARD_FILES,
)
from slipstream.analysis.nesting import nesting_of
from slipstream.store import Tables

_FRAME = re.compile(r"\s*(?P<file>.+?)\((?P<line>-?\d+)\): (?P<function>.*\S)\s*", re.S)
_MODULE = re.compile(r"nn\.Module: (?P<module>.+)", re.S)
_INSTALLED = re.compile(
    r"(^|/)(site-packages|dist-packages)/"
    r"|(^|/)lib(32|64)?/python\d(\.\d+)?t?/"
    r"|(^|/)python\d{2,3}\.zip/"
)
_WINDOWS_LIBRARY = re.compile(r"^[A-Z]:/.*?/lib/(?P<rest>.+)$", re.I)
_GENERATED = re.compile(r"(^|/)(torchinductor_[^/]*|torch_compile_debug|\.triton|triton_cache|torch_extensions)/")
_CELL = re.compile(r"^<(ipython-input|stdin)")
"""Code in angle brackets that somebody typed; all other such code is made by libraries."""
_DEMO = re.compile(r"(^|/)slipstream/demo/")
"""The bundled job is there to be looked at like anybody's own."""
_ALWAYS_LIBRARY = frozenset({"torch", "functorch", "triton", "slipstream"})


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A call on a Python stack; ``file`` and ``line`` are None for built-ins and modules."""

    file: str | None
    line: int | None
    function: str
    kind: Literal["user", "library", "builtin", "module"]


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``frames``."""
    counts = tables["python"].group_by("name").len().with_columns(pl.col("name").cast(pl.String)).sort("name")
    names = counts["name"]
    frames = [classify(name, tables.trace.packages) for name in names]
    running = _running_at_start(tables)
    already = [running.get(name, 0) == count for name, count in zip(names, counts["len"], strict=True)]
    return pl.DataFrame(
        {
            "name": names,
            "file": [frame.file for frame in frames],
            "line": _def_lines(tables, frames, already),
            "function": [frame.function for frame in frames],
            "kind": [frame.kind for frame in frames],
        },
        schema={"name": pl.String, "file": pl.String, "line": pl.Int32, "function": pl.String, "kind": pl.String},
    )


def _running_at_start(tables: Tables) -> dict[str, int]:
    """How many rows of each name were calls that ran already when the recording began: each thread's first stack."""
    nesting = nesting_of(tables.trace, "python")
    found: list[int] = []
    for first, last in nesting.borders.values():
        rows = nesting.order[first:last]
        breaks = np.flatnonzero(nesting.parent[rows[1:]] != rows[:-1])
        found += rows[: int(breaks[0]) + 1 if len(breaks) else None].tolist()
    names = tables["python"]["name"].gather(found).cast(pl.String)
    return dict(names.value_counts().iter_rows())


def _def_lines(tables: Tables, frames: Sequence[Frame], already: Sequence[bool]) -> list[int | None]:
    """Line of the def of each frame.

    The profiler names a call that ran already when it started by the line that it was at. Its def is then the nearest
    one above of that function, as other calls or the capture's lines tell; where none is known the line stays.
    """
    known: dict[tuple[str | None, str], list[int]] = {}
    for frame, ran in zip(frames, already, strict=True):
        if frame.line is not None and not ran:
            known.setdefault((frame.file, frame.function), []).append(frame.line)
    if tables.trace.has("statements"):
        seen = tables["statements"].select(pl.col("file", "function").cast(pl.String), "def_line").unique()
        for file, function, line in seen.iter_rows():
            known.setdefault((file, function), []).append(line)
    lines: list[int | None] = []
    for frame, ran in zip(frames, already, strict=True):
        line = frame.line
        if line is not None and ran:
            above = [of_def for of_def in known.get((frame.file, frame.function), []) if of_def <= line]
            line = max(above, default=line)
        lines.append(line)
    return lines


def classify(name: str, packages: frozenset[str] | None = None) -> Frame:
    """Take one frame apart.

    Args:
        name: ``file(line): function``, ``<built-in ...>`` or ``nn.Module: Name_0``.
        packages: top-level names of what was installed where it was recorded; None or empty: not known, then a
            table of well-known packages is used.
    """
    module = _MODULE.fullmatch(name)
    if module:
        return Frame(file=None, line=None, function=module["module"], kind="module")
    frame = _FRAME.fullmatch(name)
    if not frame:
        return Frame(file=None, line=None, function=name, kind="builtin")
    file, line = frame["file"], int(frame["line"])
    kind: Literal["user", "library"] = "user" if is_users(file, packages) else "library"
    return Frame(file=file, line=line if line >= 0 else None, function=frame["function"], kind=kind)


def is_users(file: str, packages: frozenset[str] | None = None) -> bool:
    """Whether a file holds the user's own code: everything does that is not known to belong to somebody else.

    Args:
        file: path as a recording writes it: whole, or without the prefix under which Python found it.
        packages: as for ``classify``.
    """
    path = file.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    if path.startswith("<"):
        return bool(_CELL.match(path))
    if _DEMO.search(path):
        return True
    if _INSTALLED.search(path) or _GENERATED.search(path):
        return False
    windows = _WINDOWS_LIBRARY.match(path)
    if windows:
        return not _is_standard(windows["rest"])
    if path.startswith("/") or re.match(r"[A-Za-z]:/", path):
        return True
    return not _is_standard(path) and not _is_known(path, packages)


def _is_standard(path: str) -> bool:
    first, _, rest = path.partition("/")
    return first in STANDARD_DIRECTORIES if rest else _without_suffix(first) in STANDARD_FILES


def _is_known(path: str, packages: frozenset[str] | None) -> bool:
    first, _, rest = path.partition("/")
    top = first if rest else _without_suffix(first)
    if packages:
        return top in packages or top in _ALWAYS_LIBRARY
    if not rest:
        return top in KNOWN_FILES
    if first in AMBIGUOUS_PACKAGES:
        inside = _without_suffix(rest)
        return any(inside == known or inside.startswith(f"{known}/") for known in AMBIGUOUS_PACKAGES[first])
    return first in KNOWN_PACKAGES


def _without_suffix(path: str) -> str:
    return re.sub(r"\.py[cdwx]?$", "", path)
