"""Costs grouped by the place in the user's code that causes them."""

import msgspec
import polars as pl

from slipstream.model import Location
from slipstream.rules.rule import location_of

PLACE = ("file", "line", "function", "precision")
WORTH_SHARE = 0.01
"""A place that costs less of the window than this gets no finding of its own: it could not be acted on."""


class PlaceCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one place costs."""

    location: Location | None
    """None: no user frame is known, or these are the leftovers of many places."""
    cost_ns: int
    rows: pl.DataFrame
    """The rows behind it, the costliest first."""
    elsewhere: int
    """Number of places that share this entry because each alone is small; 0: one place, or none known."""

    @property
    def suffix(self) -> str:
        """What a title adds for leftovers."""
        return f" (at {self.elsewhere} small places together)" if self.elsewhere else ""


def by_place(rows: pl.DataFrame, cost: str, length_ns: int) -> list[PlaceCost]:
    """One entry per place that costs something worth acting on, the rest in one more; costliest first.

    Args:
        rows: the columns file, line, function, precision (all null: unknown) and the cost.
        cost: column with the cost in ns.
        length_ns: length of the window.
    """
    rows = rows.filter(pl.col(cost) > 0).with_columns(pl.col(PLACE[0], PLACE[2], PLACE[3]).cast(pl.String))
    if not rows.height:
        return []
    when = [column for column in ("ts_ns", "start_ns") if column in rows.columns]
    rows = rows.sort(cost, *when, descending=[True, *(False for _ in when)])  # the order in the file must not matter
    rows = rows.with_columns(pl.col(cost).sum().over(PLACE).alias("_place_ns"))
    small = (pl.col("_place_ns") < WORTH_SHARE * length_ns) & pl.col("line").is_not_null()
    found = []
    for _, part in rows.filter(~small).group_by(PLACE, maintain_order=True):
        found.append(_entry(part.drop("_place_ns"), cost, 0))
    left = rows.filter(small)
    if left.height:
        count = left.select(PLACE).n_unique()
        found.append(_entry(left.drop("_place_ns"), cost, 0 if count == 1 else count))
    return sorted(found, key=lambda place: -place.cost_ns)


def _entry(rows: pl.DataFrame, cost: str, elsewhere: int) -> PlaceCost:
    return PlaceCost(
        location=None if elsewhere else location_of(rows.row(0, named=True)),
        cost_ns=int(rows[cost].sum()),
        rows=rows,
        elsewhere=elsewhere,
    )


def at_place(rows: pl.DataFrame, location: Location | None) -> pl.DataFrame:
    """The rows of one place; without a place all rows.

    Args:
        rows: the columns file, line, function and precision.
        location: of a finding.
    """
    if location is None:
        return rows
    return rows.filter(
        (pl.col("file").cast(pl.String) == location.file)
        & (pl.col("line") == location.line)
        & (pl.col("function").cast(pl.String) == location.function)
    )


def spoken(location: Location) -> str:
    """A place within a sentence: ``train.py:42``, or ``main (train.py:40)`` when only the def is known."""
    at = f"{location.file}:{location.line}"
    return f"{location.function} ({at})" if location.precision == "function" else at


def dominant_place(rows: pl.DataFrame, cost: str) -> Location | None:
    """The place that causes more than half of the cost, or None.

    Args:
        rows: the columns file, line, function, precision and the cost.
        cost: column with the cost in ns.
    """
    total = int(rows[cost].sum())
    sums = (
        rows.with_columns(pl.col(PLACE[0], PLACE[2], PLACE[3]).cast(pl.String))
        .group_by(PLACE)
        .agg(pl.col(cost).sum())
        .sort(cost, descending=True)
    )
    first = sums.row(0, named=True) if sums.height else None
    return location_of(first) if first is not None and 2 * int(first[cost]) > total else None
