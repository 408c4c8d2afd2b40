"""Batches of decoded elements -> columns, one growing frame per kind of row.

Times are absolute here (as the file counts them, in ns, null where unusable or missing).
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, get_args

import msgspec
import polars as pl
from msgspec import Raw

from slipstream.ingest.categories import RowKind, name_decides, newer_category, row_kind
from slipstream.ingest.clock import nanoseconds, nanoseconds_of_texts
from slipstream.ingest.elements import Batch
from slipstream.ingest.ledger import Ledger
from slipstream.ingest.records import (
    ABSENT,
    Args,
    CopyArgs,
    Event,
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

_DECODERS = {shape: msgspec.json.Decoder(list[shape]) for shape in SHAPES.values()}  # type: ignore[valid-type]
_GETTERS = {shape: [(name, operator.attrgetter(name)) for name in shape.__struct_fields__] for shape in SHAPES.values()}
GATHERED_BYTES = 4 * 1024 * 1024
"""How much text is gathered before it is turned into columns."""
_TEXTS = msgspec.json.Decoder(list[TextEvent])


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What all elements of one phase, category, process and thread (and, where it matters, name) have in common."""

    rows: RowKind | None
    """The table; None for elements without a phase."""
    phase: str
    category: str | None
    """In the newer schema's words."""
    thread: int


_ROW_KINDS: tuple[RowKind | None, ...] = (None, *get_args(RowKind))
_KEY_PARTS = ("ph", "cat", "pid", "tid")
_KEY = operator.attrgetter(*_KEY_PARTS)


class _Kinds(dict[tuple[Any, ...], int]):
    """(phase, category, process, thread) of an element, with its name where that decides -> number of its kind."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Kind] = []
        self.rows: list[RowKind | None] = []
        """``rows`` of each, by its number."""
        self.by_name: set[int] = set()
        """Numbers of those for which the name has to be looked at as well."""
        self.threads: dict[tuple[str | None, str | None], int] = {}

    def __missing__(self, key: tuple[Any, ...]) -> int:
        phase, category, process, thread = key[0] or "", key[1] or "", text_of(key[2]), text_of(key[3])
        name = key[-1] or "" if len(key) > len(_KEY_PARTS) else ""
        newer = newer_category(phase, category, name)
        self[key] = number = len(self.found)
        rows = row_kind(phase, newer, name, process or "") if phase else None
        place = self.threads.setdefault((process, thread), len(self.threads))
        self.found.append(Kind(rows=rows, phase=phase, category=newer or None, thread=place))
        self.rows.append(rows)
        if len(key) == len(_KEY_PARTS) and phase and name_decides(phase, category):
            self.by_name.add(number)
        return number


class _Gathered:
    """What was taken from the elements of some batches, before it becomes columns."""

    def __init__(self) -> None:
        self.size = 0
        self.texts: list[bytes] = []
        self.positions: list[int] = []
        self.kinds: list[int] = []
        self.names: list[str | None] = []
        self.starts: list[Number] = []
        self.lengths: list[Number] = []
        self.arguments: dict[RowKind, dict[str, list[Any]]] = {}

    def times(self) -> tuple[pl.Series, pl.Series]:
        """Starts and lengths in ns; the texts are read again where floats would not be exact."""
        starts, lengths = nanoseconds(self.starts), nanoseconds(self.lengths)
        if starts is None or lengths is None:
            again = [event for text in self.texts for event in _TEXTS.decode(b"[" + text + b"]")]
            if starts is None:
                starts = nanoseconds_of_texts([event.ts for event in again])
            if lengths is None:
                lengths = nanoseconds_of_texts([event.dur for event in again])
        return starts, lengths


class Columns:
    """Collects batches, column by column; afterwards gives the rows of each kind.

    The work per element is kept to what only its decoded record can tell; all else is done on whole columns.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kinds = _Kinds()
        self._gathered = _Gathered()
        self._base: dict[str, list[pl.Series]] = {name: [] for name in ("event", "kind", "name", "ts_ns", "dur_ns")}
        self._arguments: dict[RowKind, dict[str, list[pl.Series]]] = {}
        self._whole: pl.DataFrame | None = None

    def add(self, batch: Batch) -> None:
        """Take the elements of one batch."""
        events, gathered = batch.events, self._gathered
        names = [event.name for event in events]
        kinds = list(map(self._kinds.__getitem__, map(_KEY, events)))
        self._look_at_names(kinds, events, names)
        gathered.texts.append(batch.text)
        gathered.positions.extend(batch.positions)
        gathered.kinds.extend(kinds)
        gathered.names.extend(names)
        gathered.starts.extend([event.ts for event in events])
        gathered.lengths.extend([event.dur for event in events])
        groups: dict[RowKind | None, list[Event]] = {}
        add = [groups.setdefault(kind, []).append for kind in self._kinds.rows]
        for event, number in zip(events, kinds, strict=True):
            add[number](event)
        for kind, chosen in groups.items():
            if kind is not None and chosen:
                self._add_arguments(gathered.arguments.setdefault(kind, {}), kind, chosen)
        gathered.size += len(batch.text)
        if gathered.size > GATHERED_BYTES:
            self._flush()

    def _look_at_names(self, kinds: list[int], events: list[Event], names: list[str | None]) -> None:
        deciding = self._kinds.by_name
        if deciding.isdisjoint(kinds):
            return
        known: dict[tuple[int, str | None], int] = {}
        for at, number in enumerate(kinds):
            if number in deciding:
                key = (number, names[at])
                if key not in known:
                    known[key] = self._kinds[(*_KEY(events[at]), names[at])]
                kinds[at] = known[key]

    def _add_arguments(self, columns: dict[str, list[Any]], kind: RowKind, events: list[Event]) -> None:
        if kind == "flow":
            columns.setdefault("flow_id", []).extend([event.id for event in events])
        elif kind == "counter":
            columns.setdefault("values", []).extend([event.args for event in events])
        elif kind in SHAPES:
            shape = SHAPES[kind]
            arguments = self._decoded(shape, [event.args for event in events])
            for name, value_of in _GETTERS[shape]:
                columns.setdefault(name, []).extend(map(value_of, arguments))
            if kind == "op":
                columns.setdefault("args", []).extend(_further_arguments(events, columns))
        else:
            columns.setdefault("", [])

    def _flush(self) -> None:
        """Turn what was gathered into columns."""
        gathered, self._gathered = self._gathered, _Gathered()
        if not gathered.kinds:
            return
        starts, lengths = gathered.times()
        self._base["event"].append(pl.Series(gathered.positions, dtype=pl.UInt32))
        self._base["kind"].append(pl.Series(gathered.kinds, dtype=pl.Int32))
        self._base["name"].append(pl.Series(gathered.names, dtype=TEXT))
        self._base["ts_ns"].append(starts)
        self._base["dur_ns"].append(lengths)
        for kind, columns in gathered.arguments.items():
            series = self._arguments.setdefault(kind, {})
            for name, values in columns.items():
                if name:
                    series.setdefault(name, []).append(READERS.get(name, integers)(values))

    def _decoded(self, shape: type[Args], raws: list[Raw]) -> list[Args]:
        found: list[Args]
        try:
            found = _DECODERS[shape].decode(b"[" + b",".join(raws) + b"]")
        except (msgspec.DecodeError, RecursionError):
            found = [self._argument(shape, bytes(raw)) for raw in raws]
        return found

    def _argument(self, shape: type[Args], raw: bytes) -> Args:
        # Sound JSON by now, save that texts nobody looked at yet may not be UTF-8.
        text = raw.decode(errors="replace").encode()
        if text != raw:
            note_repair(INVALID_UTF8, self._ledger)
        return lenient(shape, text)

    def _all(self) -> pl.DataFrame:
        """Every element, with what its kind tells."""
        if self._whole is None:
            self._flush()
            kinds = self._kinds.found
            base = pl.DataFrame({name: pl.concat(parts) for name, parts in self._base.items() if parts})
            self._base = {}
            number = base["kind"]
            self._whole = base.drop("kind").with_columns(
                pl.Series([kind.thread for kind in kinds], dtype=pl.Int32).gather(number).alias("thread"),
                pl.Series([kind.phase for kind in kinds], dtype=TEXT).gather(number).alias("phase"),
                pl.Series([kind.category for kind in kinds], dtype=TEXT).gather(number).alias("category"),
                pl.Series([_ROW_KINDS.index(kind.rows) for kind in kinds], dtype=pl.UInt8).gather(number).alias("rows"),
            )
        return self._whole

    def _shown(self) -> pl.Series:
        rows = self._all()["rows"]
        return (rows != _ROW_KINDS.index(None)) & (rows != _ROW_KINDS.index("metadata"))

    def spans(self) -> pl.DataFrame:
        """``ts_ns`` and ``dur_ns`` of all elements that have a phase and are no metadata."""
        return self._all().select("ts_ns", "dur_ns").filter(self._shown())

    def events(self) -> pl.DataFrame:
        """All elements that have a phase and are no metadata, in the order of the file."""
        return self._all().drop("rows").filter(self._shown())

    def nothing(self) -> int:
        """How many elements are null or have no phase."""
        return int((self._all()["rows"] == _ROW_KINDS.index(None)).sum())

    def kinds(self) -> list[RowKind]:
        """Kinds that have rows."""
        self._flush()
        return list(self._arguments)

    def rows(self, kind: RowKind) -> pl.DataFrame | None:
        """The rows of one kind with the arguments that are read of it, or None when there are none."""
        if kind not in self._arguments:
            return None
        whole = self._all()
        frame = whole.drop("rows").filter(whole["rows"] == _ROW_KINDS.index(kind))
        return frame.hstack([pl.concat(parts).alias(name) for name, parts in self._arguments[kind].items()])

    def threads(self) -> pl.DataFrame:
        """The table of threads, without names.

        An id written as text and the same one written as a number are one thread.
        """
        rows = self._kinds.threads
        return pl.DataFrame(
            {
                "thread": pl.Series(range(len(rows)), dtype=pl.Int32),
                "pid": pl.Series([pid for pid, _ in rows], dtype=pl.String),
                "tid": pl.Series([tid for _, tid in rows], dtype=pl.String),
            }
        )


def _further_arguments(events: list[Event], columns: dict[str, list[Any]]) -> list[Raw]:
    """All arguments of those ops that have some beyond the columns: collectives and generated kernels."""
    count = len(events)
    collectives, generated = columns["collective_name"][-count:], columns["kernel_file"][-count:]
    if collectives.count(ABSENT) == count and generated.count(ABSENT) == count:
        return [ABSENT] * count
    told = zip(events, collectives, generated, strict=True)
    return [event.args if collective or kernel else ABSENT for event, collective, kernel in told]


def text_of(value: Number) -> str | None:
    """An id as text; None where there is none."""
    return None if value is None else str(value)


def integers(values: list[Number]) -> pl.Series:
    """Ids and counts; what is no whole number that 64 bits can hold becomes null."""
    if values.count(None) == len(values):
        return pl.Series(values=[None], dtype=pl.Int64).new_from_index(0, len(values))
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


def texts(values: Sequence[Raw]) -> pl.Series:
    """JSON as it stands; null where there is none."""
    if values.count(ABSENT) == len(values):
        return pl.Series(values=[None], dtype=pl.String).new_from_index(0, len(values))
    bytes_ = [bytes(value) if value else None for value in values]
    try:
        return pl.Series(bytes_, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series([value and value.decode(errors="replace") for value in bytes_], dtype=pl.String)


def words(values: list[Number]) -> pl.Series:
    """Texts that repeat."""
    return pl.Series([None if value is None else str(value) for value in values], dtype=TEXT)


READERS: dict[str, Callable[[list[Any]], pl.Series]] = {
    "args": texts,
    "values": texts,
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
