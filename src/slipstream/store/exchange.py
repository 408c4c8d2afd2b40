"""A table for other libraries: as an Arrow table or a pandas data frame with the same columns, rows and gaps."""

from typing import Any

import polars as pl

from slipstream.model import MissingDependency


def to_arrow(frame: pl.DataFrame) -> Any:
    """A frame as a ``pyarrow.Table``; texts that repeat are dictionaries, what is missing is null.

    Args:
        frame: one of the tables.
    Raises:
        MissingDependency: pyarrow is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise _missing("pyarrow") from error
    # The oldest layout: many readers do not know Arrow's newer string views.
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    # pandas and others refuse dictionaries with unsigned indices, which polars writes.
    signed = pyarrow.dictionary(pyarrow.int32(), pyarrow.large_string())
    fields = [(field.name, signed if pyarrow.types.is_dictionary(field.type) else field.type) for field in table.schema]
    return table.cast(pyarrow.schema(fields))


def to_pandas(frame: pl.DataFrame) -> Any:
    """A frame as a ``pandas.DataFrame``, in types that know missing values.

    Without them one missing integer would turn its column into floats, which do not hold every id.

    Args:
        frame: one of the tables.
    Raises:
        MissingDependency: pandas or pyarrow is not installed.
    """
    table = to_arrow(frame)
    try:
        import pandas
    except ImportError as error:
        raise _missing("pandas") from error
    import pyarrow

    known = {
        pyarrow.bool_(): pandas.BooleanDtype(),
        pyarrow.float32(): pandas.Float32Dtype(),
        pyarrow.float64(): pandas.Float64Dtype(),
        pyarrow.large_string(): pandas.StringDtype(),
    }
    for bits in (8, 16, 32, 64):
        known[getattr(pyarrow, f"int{bits}")()] = getattr(pandas, f"Int{bits}Dtype")()
        known[getattr(pyarrow, f"uint{bits}")()] = getattr(pandas, f"UInt{bits}Dtype")()
    return table.to_pandas(types_mapper=known.get)


def _missing(package: str) -> MissingDependency:
    return MissingDependency(f"tables for other libraries need {package}: pip install 'slipstream[arrow]'")
