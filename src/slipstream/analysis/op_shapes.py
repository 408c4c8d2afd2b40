"""Recorded shapes and types of ops' inputs as text that can be compared."""

import polars as pl

COLUMNS = ("input_dims", "input_types", "concrete_inputs")


def compact(text: pl.Series) -> pl.Series:
    """JSON without the blanks that some recordings write between its parts; every distinct text is read once."""
    distinct = text.unique().drop_nulls()
    short = pl.DataFrame({"given": distinct, "short": distinct.str.replace_all(r"\s*([\[\],])\s*", "$1")})
    given = text.to_frame("given")
    return given.join(short, on="given", how="left", maintain_order="left")["short"].alias(text.name)
