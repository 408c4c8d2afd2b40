"""How a table is declared: columns with a type, a unit, a meaning and what a missing value says."""

from collections.abc import Mapping
from typing import Literal

import msgspec
import polars as pl

Kind = Literal["recorded", "measured", "derived"]
"""recorded: read from the trace; measured: by slipstream's own capture; derived: filled by ``analysis``."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column; ``missing`` tells what a null means ("" when there are none)."""

    name: str
    dtype: pl.DataType
    meaning: str
    unit: str = ""
    missing: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One declared table."""

    name: str
    kind: Kind
    meaning: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Column name -> polars type, in order."""
        return {column.name: column.dtype for column in self.columns}

    def empty(self) -> pl.DataFrame:
        """A frame without rows that has this table's schema."""
        return pl.DataFrame(schema=self.schema)

    def frame(self, data: Mapping[str, object] | pl.DataFrame) -> pl.DataFrame:
        """Bring data to this table's schema.

        Args:
            data: columns by name; one that is left out becomes null.
        Raises:
            ValueError: a column is not declared.
        """
        frame = data if isinstance(data, pl.DataFrame) else pl.DataFrame(data, strict=False)
        if not frame.width:
            return self.empty()  # without a column to follow, the nulls below would make one row
        unknown = set(frame.columns) - set(self.schema)
        if unknown:
            raise ValueError(f"table {self.name} declares no column {', '.join(sorted(unknown))}")
        return frame.select(
            (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in self.schema.items()
        )


def column(
    name: str, dtype: pl.DataType | type[pl.DataType], meaning: str, unit: str = "", missing: str = ""
) -> Column:
    """Declare a column in one line."""
    return Column(
        name=name, dtype=dtype() if isinstance(dtype, type) else dtype, meaning=meaning, unit=unit, missing=missing
    )
