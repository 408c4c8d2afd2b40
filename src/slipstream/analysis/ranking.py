"""Order and places of tables by name."""

import polars as pl

from slipstream.store import Tables

_PLACE = ("file", "line", "function", "precision")


def costliest_places(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    """The place in the user's code that costs most of each name.

    Args:
        tables: reads op_places.
        rows: name, op_event (null: no op known) and cost_ns of each event.
    Returns:
        One row per name with a known place: name, file, line, function, precision.
    """
    places = tables["op_places"].rename({"event": "op_event"}).filter(pl.col("file").is_not_null())
    sums = rows.join(places, on="op_event").group_by("name", *_PLACE).agg(pl.col("cost_ns").sum(), pl.len())
    order = [pl.col("cost_ns"), pl.col("len"), pl.col("file").cast(pl.String), pl.col("line")]
    best = sums.sort(*order, descending=[True, True, False, False]).unique("name", keep="first", maintain_order=True)
    return best.select("name", *_PLACE)


def ranked(stats: pl.DataFrame) -> pl.DataFrame:
    """Rows by ``self_ns``, the most first, with the share of each in their sum (0 where that is 0)."""
    whole = stats["self_ns"].sum()
    share = pl.col("self_ns") / whole if whole else pl.lit(0.0)
    return stats.with_columns(share=share).sort("self_ns", "count", "name", descending=[True, True, False])
