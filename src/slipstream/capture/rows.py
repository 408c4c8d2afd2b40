"""Columns that grow during a job of any length without growing without bound."""

from array import array
from collections.abc import Iterable, Sequence

CAPACITY = 100_000
"""Rows of one table that are held; 100,000 steps are some 15 MB."""

NULL = -(2**62)
"""Stands for a missing value while rows are held."""


class Rows:
    """Rows of integers, thinned evenly when they become too many.

    When the capacity is reached, every second of the rows held is dropped and from then on only every second new
    one is taken, and so forth. Rows that matter (those of the recorded window) are always kept.

    Args:
        names: the columns.
        capacity: rows to hold at most, apart from those that are always kept.
    """

    def __init__(self, names: Sequence[str], capacity: int = CAPACITY) -> None:
        self._names = tuple(names)
        self._columns = [array("q") for _ in names]
        self._kept = array("b")
        self._capacity = capacity
        self._seen = 0
        self.every = 1
        """One of so many rows was taken."""

    def __len__(self) -> int:
        return len(self._kept)

    def append(self, values: Iterable[int | None], keep: bool = False) -> None:
        """Add a row; ``keep`` holds it whatever happens."""
        self._seen += 1
        if not keep and self._seen % self.every:
            return
        for column, value in zip(self._columns, values, strict=True):
            column.append(NULL if value is None else value)
        self._kept.append(keep)
        if len(self._kept) >= self._capacity:
            self._thin()

    def pop(self) -> None:
        """Take the last row back; it must have been held."""
        self._seen -= 1
        self._kept.pop()
        for column in self._columns:
            column.pop()

    def _thin(self) -> None:
        self.every *= 2
        nth = 0
        chosen = []
        for place, keep in enumerate(self._kept):
            nth += not keep
            if keep or nth % 2 == 0:
                chosen.append(place)
        self._columns = [array("q", [column[place] for place in chosen]) for column in self._columns]
        self._kept = array("b", [self._kept[place] for place in chosen])
        # Rows that are always kept must not make each further one thin again.
        self._capacity = max(self._capacity, 2 * len(chosen))

    def columns(self) -> dict[str, "array[int]"]:
        """The rows held, by column; ``NULL`` stands for missing values."""
        return dict(zip(self._names, self._columns, strict=True))
