"""The user's code around a moment that no op marks: a loader's wait, a synchronize called by hand."""

import functools
import re

import numpy.typing as npt
import polars as pl

from slipstream.analysis.frames import classify
from slipstream.analysis.nesting import Longs, Nesting, nest
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
        self._user_calls = functools.cache(self._user_calls_once)

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

    def around(self, thread: npt.ArrayLike, position: Longs) -> pl.DataFrame:
        """The innermost user function around each moment, by Python rows.

        Returns:
            Columns file, line (of the def), function, precision; null where no user frame is known.
        """
        rows, nesting = self._user_calls()
        index = pl.Series(nesting.innermost(thread, position)).replace(-1, None)
        found = pl.DataFrame({"name": rows["name"].cast(pl.String).gather(index)})
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
                    place = {"file": taken.file, "line": taken.line, "function": taken.function}
                    return {**place, "precision": "statement"}
        return None

    def _user_calls_once(self) -> tuple[pl.DataFrame, Nesting]:
        """Calls of the user's functions, and how they lie inside each other."""
        user = self._tables["frames"].filter(pl.col("kind") == "user")["name"]
        rows = self._tables["python"].filter(pl.col("name").is_in(user.implode()))
        return rows, nest(rows["thread"], rows["ts_ns"], rows["ts_ns"] + rows["dur_ns"], rows["python_id"].fill_null(0))
