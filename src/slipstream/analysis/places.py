"""The user's code around a moment that no op marks: a loader's wait, a synchronize called by hand."""

import functools
import re

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.frames import classify
from slipstream.analysis.painting import Longs
from slipstream.store import Tables

PLACE = {"file": pl.String(), "line": pl.Int32(), "function": pl.String(), "precision": pl.String()}
LOADER_FRAME = re.compile(r"dataloader\.py\(\d+\): __next__$")


class Places:
    """Looks up places in one recording.

    Args:
        tables: reads python, frames, ops and op_places.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._user_calls = functools.cache(self._user_calls_on)

    def of_calls(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Places of runtime calls: that of the op around each, else the innermost user frame around it.

        Args:
            calls: columns thread, ts_ns, op_event.
        Returns:
            Columns file, line, function, precision; one row per call.
        """
        by_op = calls.select(pl.col("op_event").alias("event")).join(
            self._tables["op_places"].select("event", *(pl.col(name).cast(dtype) for name, dtype in PLACE.items())),
            on="event",
            how="left",
            maintain_order="left",
        )
        by_frame = self.around(calls["thread"].to_numpy(), calls["ts_ns"].to_numpy())
        return pl.DataFrame(
            [
                pl.select(
                    pl.when(by_op["line"].is_null()).then(by_frame[name]).otherwise(by_op[name]).alias(name)
                ).to_series()
                for name in PLACE
            ]
        )

    def around(self, thread: npt.NDArray[np.integer], position: Longs) -> pl.DataFrame:
        """The innermost user function around each moment, by Python rows.

        Returns:
            Columns file, line (of the def), function, precision; null where no user frame is known.
        """
        names: list[str | None] = [None] * len(position)
        for place, (who, when) in enumerate(zip(thread.tolist(), position.tolist(), strict=True)):
            names[place] = self._innermost(who, when)
        found = pl.DataFrame({"name": names}, schema={"name": pl.String})
        frames = self._tables["frames"].select(pl.col("name").cast(pl.String), "file", "line", "function")
        located = found.join(frames, on="name", how="left", maintain_order="left").with_columns(
            precision=pl.when(pl.col("line").is_not_null()).then(pl.lit("function"))
        )
        return located.select(pl.col(name).cast(dtype) for name, dtype in PLACE.items())

    def loader_statement(self, thread: int, start_ns: int, end_ns: int) -> dict[str, object] | None:
        """For recordings with call stacks on ops: the user's frame that asked the loader, from an op made inside.

        Newer recordings have Python rows instead; there the answer is None.
        """
        inside = self._tables["ops"].filter(
            (pl.col("thread") == thread)
            & pl.col("ts_ns").is_between(start_ns, end_ns)
            & pl.col("call_stack").is_not_null()
        )
        for stack in inside["call_stack"].cast(pl.String).unique(maintain_order=True).head(20):
            frames = [frame.strip() for frame in stack.split(";")]
            asked = next((place for place, frame in enumerate(frames) if LOADER_FRAME.search(frame)), None)
            if asked is None:
                continue
            for frame in frames[asked + 1 :]:
                taken = classify(frame, self._tables.trace.packages)
                if taken.kind == "user":
                    return {"file": taken.file, "line": taken.line, "function": taken.function, "precision": "function"}
        return None

    def _innermost(self, thread: int, position: int) -> str | None:
        start, end, parent, names = self._user_calls(thread)
        place = int(np.searchsorted(start, position, side="right")) - 1
        while place >= 0 and end[place] <= position:
            place = int(parent[place])
        return names[place] if place >= 0 else None

    def _user_calls_on(self, thread: int) -> tuple[Longs, Longs, Longs, list[str]]:
        """Calls of the user's functions on a thread by start, each with the call around it (-1: none)."""
        user = self._tables["frames"].filter(pl.col("kind") == "user")["name"]
        rows = self._tables["python"].filter((pl.col("thread") == thread) & pl.col("name").is_in(user.implode()))
        rows = rows.sort("ts_ns", "dur_ns", descending=[False, True])
        start: Longs = rows["ts_ns"].to_numpy()
        end: Longs = start + rows["dur_ns"].to_numpy()
        parent = np.full(len(start), -1, np.int64)
        stack: list[int] = []
        for place in range(len(start)):
            while stack and end[stack[-1]] <= start[place]:
                stack.pop()
            parent[place] = stack[-1] if stack else -1
            stack.append(place)
        return start, end, parent, rows["name"].cast(pl.String).to_list()
