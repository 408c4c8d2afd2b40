"""Measured rows -> Parquet files of the run folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from slipstream.capture.line_tracing import LineTracer
from slipstream.capture.measurements import RECORDED, WARMUP
from slipstream.capture.rows import NULL, Rows
from slipstream.capture.statement_lines import StatementLines
from slipstream.capture.user_code import Place, TraceNames
from slipstream.store import DECLARED, LINES

PHASES = ("warmup", "recorded", "places", "plain")
SPANS = ("backward", "optimizer")


class Writer:
    """Writes the tables of one rank.

    Args:
        folder: the rank's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._statements = StatementLines()

    def write(
        self,
        rows: Mapping[str, Rows],
        places: Sequence[Place],
        switches: Mapping[str, str | None],
        epoch_offset_ns: int,
        first_recorded: int | None,
    ) -> None:
        """Write all measured tables anew.

        Args:
            rows: by table; positions on the monotonic clock, places as indices.
            places: what the indices mean.
            switches: state of the process.
            epoch_offset_ns: what makes epoch ns of a position.
            first_recorded: first step in the trace; None: there is none. Steps of an earlier window, which was
                replaced, count as warm-up.
        """
        place_table = self._places(places)
        for name, table_rows in rows.items():
            frame = pl.DataFrame(table_rows.cells(), schema=dict.fromkeys(table_rows.names, pl.Int64)).with_columns(
                pl.when(pl.all() == NULL).then(None).otherwise(pl.all()).name.keep()
            )
            frame = frame.with_columns(start_ns=pl.col("start_ns") + epoch_offset_ns)
            if name == "job_steps":
                replaced = (pl.col("phase") == RECORDED) & (pl.col("number") < (first_recorded or 0))
                frame = frame.with_columns(phase=pl.when(replaced).then(WARMUP).otherwise("phase"))
            if "place" in frame.columns:
                frame = frame.join(place_table, on="place", how="left", maintain_order="left").drop("place")
            self._put(name, _with_words(name, frame))
        self._put("switches", pl.DataFrame({"name": list(switches), "value": list(switches.values())}, strict=False))

    def write_lines(self, tracer: LineTracer) -> None:
        """Write the line events of the step that was traced."""
        names = TraceNames()
        codes = {code: place for place, code in enumerate(dict.fromkeys(tracer.codes))}
        table = pl.DataFrame(
            {
                "code": range(len(codes)),
                "file": [names(code.co_filename) for code in codes],
                "function": [code.co_name for code in codes],
                "def_line": [code.co_firstlineno for code in codes],
            },
            schema={"code": pl.Int64, "file": pl.String, "function": pl.String, "def_line": pl.Int32},
        )
        lines = [
            line if line < 0 else self._statements.first(code.co_filename, line)
            for code, line in zip(tracer.codes, tracer.lines, strict=True)
        ]
        events = pl.DataFrame(
            {
                "ts_ns": np.asarray(tracer.times, dtype=np.int64),
                "code": np.array([codes[code] for code in tracer.codes], dtype=np.int64),
                "line": np.array(lines, dtype=np.int64),
            }
        ).join(table, on="code", how="left", maintain_order="left")
        frame = LINES.frame(events.drop("code").with_columns(thread_id=pl.lit(tracer.thread_id)))
        _replace(self._folder / "lines.parquet", frame)

    def _places(self, places: Sequence[Place]) -> pl.DataFrame:
        names = TraceNames()
        return pl.DataFrame(
            {
                "place": range(len(places)),
                "file": [names(code.co_filename) for code, _ in places],
                "line": [self._statements.first(code.co_filename, line) for code, line in places],
                "function": [code.co_name for code, _ in places],
            },
            schema={"place": pl.Int64, "file": pl.String, "line": pl.Int64, "function": pl.String},
        )

    def _put(self, name: str, frame: pl.DataFrame) -> None:
        _replace(self._folder / f"{name}.parquet", DECLARED[name].frame(frame))


def _with_words(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Numbers that stand for words -> the words."""
    words = {"job_steps": PHASES, "phases": SPANS}.get(name)
    if words is None:
        return frame
    return frame.with_columns(phase=pl.col("phase").replace_strict(dict(enumerate(words)), return_dtype=pl.String))


def _replace(path: Path, frame: pl.DataFrame) -> None:
    part = path.with_name(path.name + ".part")
    frame.write_parquet(part)
    part.replace(path)
