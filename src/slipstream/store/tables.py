"""All tables of one recording, the derived ones built on first use."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from slipstream.model import Integrity, NotEnoughData, Source
from slipstream.store.derived import DERIVED
from slipstream.store.exchange import to_arrow, to_pandas
from slipstream.store.trace import Trace

Builder = Callable[["Tables"], pl.DataFrame]


class Tables:
    """What analysis and rules read: ``tables["kernels"]``, ``tables["idle_spans"]``.

    Args:
        trace: the recorded and measured tables.
        builders: functions that fill derived tables, by name. A builder that cannot answer raises
            ``NotEnoughData``; the reason is kept and raised again whenever its table is asked for.
    """

    def __init__(self, trace: Trace, builders: Mapping[str, Builder]) -> None:
        self.trace = trace
        self._builders = builders
        self._built: dict[str, pl.DataFrame] = {}
        self._refused: dict[str, NotEnoughData] = {}
        self._declared = {table.name: table for table in DERIVED}

    @property
    def source(self) -> Source:
        """Where the recording came from."""
        return self.trace.source

    @property
    def integrity(self) -> Integrity:
        """How far its figures can be trusted."""
        return self.trace.integrity

    def __getitem__(self, name: str) -> pl.DataFrame:
        """One table.

        Raises:
            NotEnoughData: the recording cannot fill it; the message says what to record.
            KeyError: no such table is declared.
        """
        if name not in self._declared:
            return self.trace.table(name)
        if name in self._refused:
            raise self._refused[name]
        if name not in self._built:
            try:
                self._built[name] = self._declared[name].frame(self._builders[name](self))
            except NotEnoughData as refusal:
                self._refused[name] = refusal
                raise
        return self._built[name]

    def has(self, name: str) -> bool:
        """Whether a table can be had from this recording."""
        try:
            self[name]
        except NotEnoughData:
            return False
        return True

    def row(self, name: str) -> dict[str, object]:
        """The only row of a table of one row, as a dictionary (``window``, ``totals``)."""
        return self[name].row(0, named=True)

    def to_arrow(self, name: str) -> Any:
        """One table as a ``pyarrow.Table``; texts that repeat are dictionaries, what is missing is null.

        Raises:
            MissingDependency: pyarrow is not installed.
            NotEnoughData: the recording cannot fill the table.
            KeyError: no such table is declared.
        """
        return to_arrow(self[name])

    def to_pandas(self, name: str) -> Any:
        """One table as a ``pandas.DataFrame``.

        A missing integer stays missing (``pandas.NA``) and no integer turns into a float; texts that repeat are
        categories.

        Raises:
            MissingDependency: pandas or pyarrow is not installed.
            NotEnoughData: the recording cannot fill the table.
            KeyError: no such table is declared.
        """
        return to_pandas(self[name])
