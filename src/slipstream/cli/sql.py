"""Answers SQL from the tables of a recording; only tables that the query mentions are built."""

import re

import polars as pl

from slipstream.analysis import tables_of
from slipstream.api import load
from slipstream.cli.progress import progress
from slipstream.model import BadInput, NotEnoughData
from slipstream.reports import Rows
from slipstream.store import DECLARED, Tables, Trace

_CHANGES = re.compile(r"\s*(?:--[^\n]*\n\s*)*(create|delete|drop|insert|truncate|update)\b", re.IGNORECASE)
SHOWN = 100
"""Rows that people are shown; other formats hold all."""


def answer(path: str, sql: str) -> Rows:
    """Run a query.

    Args:
        path: whatever ``slipstream.load`` opens.
        sql: one SELECT, or SHOW TABLES, in the SQL of polars.
    Raises:
        BadInput: the path or the query cannot be used; the message names the tables there are.
    """
    if re.fullmatch(r"\s*show\s+tables\s*;?\s*", sql, re.IGNORECASE):
        rows = [{"table": t.name, "kind": t.kind, "meaning": t.meaning} for t in DECLARED.values()]
        return Rows(kind="table", columns=("table", "kind", "meaning"), rows=rows)
    change = _CHANGES.match(sql)
    if change is not None:
        # They would act on a copy and answer with nothing, as if there were no rows.
        raise BadInput(f"{change.group(1).upper()} would change nothing: only SELECT can be asked of a recording")
    with progress(f"reading {path}") as now:
        loaded = load(path)
        traces = [loaded] if isinstance(loaded, Trace) else loaded
        now("running the query")
        return _run([tables_of(trace) for trace in traces], sql)


def _run(ranks: list[Tables], sql: str) -> Rows:
    frames: dict[str, pl.LazyFrame] = {}
    refused: dict[str, str] = {}
    for name in DECLARED:
        if re.search(rf"\b{name}\b", sql):
            try:
                frames[name] = _frame(ranks, name)
            except NotEnoughData as reason:
                refused[name] = str(reason)
    try:
        with pl.SQLContext(frames) as context:
            result = context.execute(sql, eager=True)
    except pl.exceptions.PolarsError as error:
        raise BadInput(_complaint(str(error), frames, refused)) from error
    return Rows(kind="table", columns=tuple(result.columns), rows=result.to_dicts(), wrapped=False, at_most=SHOWN)


def _frame(ranks: list[Tables], name: str) -> pl.LazyFrame:
    """One table, of several ranks with a column ``rank`` in front; dictionaries become plain text."""
    if len(ranks) == 1:
        frame = ranks[0][name].lazy()
    else:
        have = [(place, tables) for place, tables in enumerate(ranks) if tables.has(name)]
        if not have:
            raise NotEnoughData(f"no rank has table {name}")
        frame = pl.concat(
            tables[name].lazy().select(pl.lit(_rank(tables, place)).cast(pl.Int32).alias("rank"), pl.all())
            for place, tables in have
        )
    texts = [column.name for column in DECLARED[name].columns if column.dtype == pl.Categorical]
    return frame.with_columns(pl.col(texts).cast(pl.String)) if texts else frame


def _rank(tables: Tables, place: int) -> int:
    return place if tables.source.rank is None else tables.source.rank


def _complaint(error: str, frames: dict[str, pl.LazyFrame], refused: dict[str, str]) -> str:
    first = error.strip().splitlines()[0]
    parts = [f"the query failed: {first}"]
    parts += [f"table {name} cannot be had: {reason}" for name, reason in refused.items()]
    parts += [f"columns of {name}: {', '.join(frame.collect_schema().names())}" for name, frame in frames.items()]
    if not frames:
        parts.append(f"tables: {', '.join(DECLARED)}")
    return "; ".join(parts)
