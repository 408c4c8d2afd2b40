"""Columns that grow during a job of any length without growing without bound."""

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
        self.names = tuple(names)
        self._cells = array("q")  # row after row: one call per row is what it costs
        self._kept = array("b")
        self._capacity = capacity
        self._seen = 0
        self.every = 1
        """One of so many rows was taken."""

    def __len__(self) -> int:
        return len(self._kept)

    def append(self, values: Sequence[int | None], keep: bool = False) -> None:
        """Add a row; ``keep`` holds it whatever happens."""
        self._seen += 1
        if not keep and self._seen % self.every:
            return
        self._cells.extend([NULL if value is None else value for value in values])
        self._kept.append(keep)
        if len(self._kept) >= self._capacity:
            self._thin()

    def pop(self) -> None:
        """Take the last row back; it must have been held."""
        self._seen -= 1
        self._kept.pop()
        del self._cells[-len(self.names) :]

    def _thin(self) -> None:
        self.every *= 2
        kept = np.array(self._kept, dtype=np.bool_)
        chosen = kept | (np.cumsum(~kept) % 2 == 0)
        self._cells = array("q", self.cells()[chosen].tobytes())
        self._kept = array("b", kept[chosen].astype(np.int8).tobytes())
        # Rows that are always kept must not make each further one thin again.
        self._capacity = max(self._capacity, 2 * len(self._kept))

    def cells(self) -> npt.NDArray[np.int64]:
        """The rows held, as an array of rows and columns; ``NULL`` stands for missing values."""
        return np.array(self._cells, dtype=np.int64).reshape(-1, len(self.names))
