"""Batches of decoded elements -> columns, one growing frame per kind of row.

Times are absolute here (as the file counts them, in ns, null where unusable or missing).
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec import Raw

from slipstream.ingest.categories import RowKind, name_decides, newer_category, row_kind
from slipstream.ingest.clock import nanoseconds, nanoseconds_of_texts
from slipstream.ingest.elements import Batch
from slipstream.ingest.ledger import Ledger
from slipstream.ingest.records import (
    EMPTY,
    Args,
    CopyArgs,
    KernelArgs,
    LinkArgs,
    MemoryArgs,
    MetadataArgs,
    Number,
    OpArgs,
    PythonArgs,
    SyncArgs,
    TextEvent,
    lenient,
)
from slipstream.ingest.repair import INVALID_UTF8, note_repair
from slipstream.store.recorded import TEXT

SHAPES: dict[RowKind, type[Args]] = {
    "op": OpArgs,
    "python": PythonArgs,
    "runtime": LinkArgs,
    "kernel": KernelArgs,
    "copy": CopyArgs,
    "set": CopyArgs,
    "sync": SyncArgs,
    "annotation": LinkArgs,
    "device_annotation": LinkArgs,
    "memory": MemoryArgs,
    "metadata": MetadataArgs,
}
"""Which arguments are read of which kind; of the others none are."""

_TEXTS = msgspec.json.Decoder(list[TextEvent | None])


class _Kinds(dict[tuple[str | None, str | None, str | None, Number], tuple[str, RowKind]]):
    """(phase, category, name where it matters, process where it matters) -> category and kind."""

    def __missing__(self, key: tuple[str | None, str | None, str | None, Number]) -> tuple[str, RowKind]:
        phase, category, name, process = key
        newer = newer_category(phase or "", category or "", name or "")
        self[key] = found = (newer, row_kind(phase or "", newer, name or "", text_of(process) or ""))
        return found


class _Deciding(dict[tuple[str | None, str | None], bool]):
    """(phase, category) -> whether the name is needed to tell the kind."""

    def __missing__(self, key: tuple[str | None, str | None]) -> bool:
        self[key] = found = name_decides(key[0] or "", key[1] or "")
        return found


class Columns:
    """Collects batches; afterwards ``frames`` holds one frame per kind, and ``events`` one of all rows."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kinds = _Kinds()
        self._deciding = _Deciding()
        self._threads: dict[tuple[Number, Number], int] = {}
        self._events: list[pl.DataFrame] = []
        self._frames: dict[RowKind, list[pl.DataFrame]] = {}
        self.nothing = 0
        """Elements that are null or say neither what they are nor when."""

    def add(self, batch: Batch) -> None:
        """Take the elements of one batch."""
        events, positions = batch.events, batch.positions
        times = _times(batch)
        empty = [at for at, event in enumerate(events) if event is None or event.ph is None]
        if empty:
            self.nothing += len(empty)
            kept = np.ones(len(events), dtype=bool)
            kept[empty] = False
            events = [event for event, keep in zip(events, kept, strict=True) if keep]
            positions = positions[kept]
            times = times.filter(pl.Series(kept))
        known = [event for event in events if event is not None]
        decides = self._deciding
        kinds = [
            self._kinds[
                (event.ph, event.cat, event.name, event.pid)
                if decides[event.ph, event.cat]
                else (event.ph, event.cat, None, None)
            ]
            for event in known
        ]
        threads = self._threads
        frame = pl.DataFrame(
            {
                "event": pl.Series(positions, dtype=pl.UInt32),
                "phase": pl.Series([event.ph for event in known], dtype=TEXT),
                "category": pl.Series([kind[0] or None for kind in kinds], dtype=TEXT),
                "name": pl.Series([event.name for event in known], dtype=TEXT),
                "thread": pl.Series(
                    [threads.setdefault((event.pid, event.tid), len(threads)) for event in known], dtype=pl.Int32
                ),
            }
        ).hstack(times)
        groups: dict[RowKind, list[int]] = {}
        for at, kind in enumerate(kinds):
            groups.setdefault(kind[1], []).append(at)
        for kind_name, rows in groups.items():
            self._frames.setdefault(kind_name, []).append(self._rows(kind_name, rows, known, frame))
        if "metadata" in groups:
            frame = frame.filter(frame["phase"].cast(pl.String) != "M")
        self._events.append(frame)

    def _rows(self, kind: RowKind, rows: list[int], events: list[Any], frame: pl.DataFrame) -> pl.DataFrame:
        chosen = [events[at] for at in rows]
        part = frame[rows].drop("phase")
        if kind == "flow":
            flow_id = integers([event.id for event in chosen])
            return part.with_columns(flow_id.alias("flow_id"), frame["phase"].gather(rows).alias("phase"))
        if kind == "counter":
            return part.with_columns(texts([event.args for event in chosen]).alias("values"))
        if kind not in SHAPES:
            return part
        shape = SHAPES[kind]
        arguments = self._arguments(shape, [event.args for event in chosen])
        columns = [
            READERS.get(name, integers)(list(map(operator.attrgetter(name), arguments))).alias(name)
            for name in shape.__struct_fields__
        ]
        part = part.hstack(columns)
        if kind == "op":
            further = [
                event.args if args.collective_name or args.kernel_file else None  # type: ignore[attr-defined]
                for event, args in zip(chosen, arguments, strict=True)
            ]
            part = part.with_columns(texts(further).alias("args"))
        return part

    def _arguments(self, shape: type[Args], raws: list[Raw]) -> list[Args]:
        wanted: Any = list[shape | None]  # type: ignore[valid-type]
        found: list[Args | None]
        try:
            found = msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=wanted)
        except (msgspec.DecodeError, RecursionError):
            found = [self._argument(shape, bytes(raw)) for raw in raws]
        nothing = shape()
        return [nothing if args is None else args for args in found]

    def _argument(self, shape: type[Args], raw: bytes) -> Args:
        # Sound JSON by now, save that texts nobody looked at yet may not be UTF-8.
        text = raw.decode(errors="replace").encode()
        if text != raw:
            note_repair(INVALID_UTF8, self._ledger)
        return lenient(shape, text)

    def events(self) -> pl.DataFrame:
        """All elements that have a phase and are no metadata, in the order of the file."""
        return pl.concat(self._events, rechunk=False) if self._events else pl.DataFrame()

    def kinds(self) -> list[RowKind]:
        """Kinds that have rows."""
        return list(self._frames)

    def rows(self, kind: RowKind) -> pl.DataFrame | None:
        """The rows of one kind, or None when there are none."""
        frames = self._frames.get(kind)
        return pl.concat(frames, rechunk=False) if frames else None

    def threads(self) -> tuple[pl.DataFrame, pl.Series]:
        """The table of threads, and for each number handed out so far its row in it.

        An id written as text and the same one written as a number are one thread.
        """
        rows: dict[tuple[str | None, str | None], int] = {}
        places = [rows.setdefault((text_of(pid), text_of(tid)), len(rows)) for pid, tid in self._threads]
        table = pl.DataFrame(
            {
                "thread": pl.Series(range(len(rows)), dtype=pl.Int32),
                "pid": pl.Series([pid for pid, _ in rows], dtype=pl.String),
                "tid": pl.Series([tid for _, tid in rows], dtype=pl.String),
            }
        )
        return table, pl.Series(places, dtype=pl.Int32)


def _times(batch: Batch) -> pl.DataFrame:
    """Times of a batch in ns; its text is read again where floats would not be exact."""
    starts = nanoseconds([event.ts if event is not None else None for event in batch.events])
    lengths = nanoseconds([event.dur if event is not None else None for event in batch.events])
    if starts is None or lengths is None:
        again = _TEXTS.decode(b"[" + batch.text + b"]")
        if starts is None:
            starts = nanoseconds_of_texts([event.ts if event is not None else EMPTY for event in again])
        if lengths is None:
            lengths = nanoseconds_of_texts([event.dur if event is not None else EMPTY for event in again])
    return pl.DataFrame({"ts_ns": starts, "dur_ns": lengths})


def text_of(value: Number) -> str | None:
    """An id as text; None where there is none."""
    return None if value is None else str(value)


def integers(values: list[Number]) -> pl.Series:
    """Ids and counts; what is no whole number that 64 bits can hold becomes null."""
    try:
        return pl.Series(values, dtype=pl.Int64)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series([_integer(value) for value in values], dtype=pl.Int64)


def _integer(value: Number) -> int | None:
    try:
        number = int(value) if value is not None else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def unsigned(values: list[Number]) -> pl.Series:
    """Addresses: 64 bits without a sign."""
    try:
        return pl.Series(values, dtype=pl.UInt64)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        kept = [int(value) if isinstance(value, int) and 0 <= value < 2**64 else None for value in values]
        return pl.Series(kept, dtype=pl.UInt64)


def reals(values: list[Number]) -> pl.Series:
    """Numbers with decimals."""
    try:
        return pl.Series(values, dtype=pl.Float64)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series([_real(value) for value in values], dtype=pl.Float64)


def _real(value: Number) -> float | None:
    try:
        return float(value) if value is not None else None
    except (ValueError, OverflowError):
        return None


def texts(values: Iterable[Raw | None]) -> pl.Series:
    """JSON as it stands; null where there is none."""
    bytes_ = [bytes(value) if value else None for value in values]
    try:
        return pl.Series(bytes_, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series([value and value.decode(errors="replace") for value in bytes_], dtype=pl.String)


def words(values: list[Number]) -> pl.Series:
    """Texts that repeat."""
    return pl.Series([None if value is None else str(value) for value in values], dtype=TEXT)


READERS: dict[str, Callable[[list[Any]], pl.Series]] = {
    "concrete_inputs": texts,
    "input_types": texts,
    "input_strides": texts,
    "input_dims": texts,
    "collective_name": texts,
    "kernel_file": texts,
    "call_stack": words,
    "address": unsigned,
    "blocks_per_sm": reals,
    "warps_per_sm": reals,
    "occupancy_pct": reals,
    "grid": texts,
    "block": texts,
    "group_ranks": texts,
    "group_name": words,
    "operation": words,
    "dtype": words,
    "kind": words,
    "direction": words,
    "given": words,
}
"""How an argument becomes a column, where it is no whole number."""
