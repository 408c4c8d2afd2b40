"""One recording: its tables, where it came from and how far it can be trusted."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from slipstream.model import Integrity, NotEnoughData, Source
from slipstream.store.exchange import to_arrow, to_pandas
from slipstream.store.measured import MEASURED
from slipstream.store.recorded import RECORDED

_DECLARED = {table.name: table for table in (*RECORDED, *MEASURED)}


class Deferred(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is read when it is first asked for."""

    height: int
    """Its rows."""
    load: Callable[[], pl.DataFrame]
    """Gives the frame with its declared columns; called once."""


class Trace:
    """The tables of one recording.

    Recorded tables are always there, possibly without rows. Measured tables are there only for slipstream's
    own captures: asking for one that was not measured raises, since an empty table would read as "none".

    ``trace.kernels`` and ``trace.table("kernels")`` are the same.

    Args:
        source: where it came from.
        integrity: what was repaired and how far figures can be trusted.
        tables: frames by name, or what reads one later; recorded ones that are left out become empty.
        element_count: elements of traceEvents, whether readable or not.
        packages: top-level names of what was installed where it was recorded (live captures); all other code
            outside the standard library is the user's. None: not known.
    Raises:
        ValueError: a table is not declared, or a frame does not have its schema (of a deferred one: when it is read).
    """

    def __init__(
        self,
        source: Source,
        integrity: Integrity,
        tables: Mapping[str, pl.DataFrame | Deferred],
        element_count: int | None = None,
        packages: frozenset[str] | None = None,
    ) -> None:
        self.source = source
        self.integrity = integrity
        self.packages = packages
        self._tables: dict[str, pl.DataFrame | Deferred] = {table.name: table.empty() for table in RECORDED}
        for name, held in tables.items():
            if name not in _DECLARED:
                raise ValueError(f"no table is declared under the name {name}")
            self._tables[name] = held if isinstance(held, Deferred) else _checked(name, held)
        self.element_count = self._tables["events"].height if element_count is None else element_count

    def table(self, name: str) -> pl.DataFrame:
        """One table by name.

        Raises:
            NotEnoughData: it is one that only slipstream's capture measures, and this recording has none.
            KeyError: no such table is declared.
        """
        if name in self._tables:
            held = self._tables[name]
            if isinstance(held, Deferred):
                held = self._tables[name] = _checked(name, held.load())
            return held
        if name in _DECLARED:
            raise NotEnoughData(f"table {name} was not measured: record the job with `slipstream run`")
        raise KeyError(name)

    def held(self) -> dict[str, pl.DataFrame | Deferred]:
        """What is there by name, deferred tables as they are: for making another trace of this one."""
        return dict(self._tables)

    def to_arrow(self, name: str) -> Any:
        """One table as a ``pyarrow.Table``; texts that repeat are dictionaries, what is missing is null.

        Raises:
            MissingDependency: pyarrow is not installed.
            NotEnoughData: the recording cannot fill the table.
            KeyError: no such table is declared.
        """
        return to_arrow(self.table(name))

    def to_pandas(self, name: str) -> Any:
        """One table as a ``pandas.DataFrame``.

        A missing integer stays missing (``pandas.NA``) and no integer turns into a float; texts that repeat are
        categories.

        Raises:
            MissingDependency: pandas or pyarrow is not installed.
            NotEnoughData: the recording cannot fill the table.
            KeyError: no such table is declared.
        """
        return to_pandas(self.table(name))

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except KeyError:
            raise AttributeError(f"Trace has no table {name}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def has(self, name: str) -> bool:
        """Whether a table is present (recorded tables always are)."""
        return name in self._tables

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {held.height:,}" for name, held in self._tables.items() if held.height)
        return f"Trace({self.source.path!r}, grade {self.integrity.grade}, rows: {rows or 'none'})"


def _checked(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    if dict(frame.schema) != _DECLARED[name].schema:
        raise ValueError(f"table {name} does not have its declared columns: {frame.schema}")
    return frame
