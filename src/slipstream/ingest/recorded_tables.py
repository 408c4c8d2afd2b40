"""Columns as collected -> the declared tables, on the clock that begins with the earliest event."""

import msgspec
import polars as pl

from slipstream.ingest import clock
from slipstream.ingest.categories import RowKind
from slipstream.ingest.collective_names import is_collective, operation_of
from slipstream.ingest.columns import Columns
from slipstream.ingest.durations import device_durations, host_durations, placed
from slipstream.ingest.ledger import Ledger, plural
from slipstream.ingest.repair import ILLEGAL_ESCAPES, literal_path, note_repair
from slipstream.ingest.step_marks import steps
from slipstream.store import DECLARED
from slipstream.store.recorded import TEXT

HOST_TABLES: dict[RowKind, str] = {"op": "ops", "python": "python", "runtime": "runtime", "annotation": "annotations"}
DEVICE_TABLES: dict[RowKind, str] = {"kernel": "kernels", "copy": "copies", "set": "sets"}
COPY_KIND = r"\b(HtoD|DtoH|DtoD|HtoH|PtoP|HtoA|AtoH|AtoA|AtoD|DtoA)\b"
CONTROL = r"[\x08\x09\x0a\x0c\x0d]"
COPY_WORDS = {
    "HOST_TO_DEVICE": "HtoD",
    "DEVICE_TO_HOST": "DtoH",
    "DEVICE_TO_DEVICE": "DtoD",
    "HOST_TO_HOST": "HtoH",
    "HostToDevice": "HtoD",
    "DeviceToHost": "DtoH",
    "DeviceToDevice": "DtoD",
    "HostToHost": "HtoH",
    "PeerToPeer": "PtoP",
}


SPANS = ("ops", "python", "runtime", "annotations", "kernels", "copies", "sets", "syncs")


class Recorded(msgspec.Struct, frozen=True):
    """The tables of one file and what is needed to describe it."""

    tables: dict[str, pl.DataFrame]
    earliest_ns: int
    """``ts`` of the earliest event, as the file counts."""


class _Assembly:
    def __init__(self, columns: Columns, ledger: Ledger) -> None:
        self.columns = columns
        self.ledger = ledger
        self.threads = columns.threads()
        spans = columns.spans()
        self.count = spans.height
        times = spans["ts_ns"]
        usable = times.filter(clock.usable(times))
        self.first = _int(usable.min())
        self.last = _int(usable.max())
        sound = spans.filter(times.is_between(self.first, self.last) & (spans["dur_ns"] < clock.FAR_NS))
        self.end = max(_int((sound["ts_ns"] + sound["dur_ns"].clip(0)).max()), self.last) - self.first
        self.unplaced = 0
        """Rows, other than the device's, whose time was unusable."""

    def rows(self, kind: RowKind) -> pl.DataFrame | None:
        """Rows of one kind with their thread and their time on the new clock (null where unusable)."""
        frame = self.columns.rows(kind)
        if frame is None:
            return None
        if "external_id_old" in frame.columns:
            frame = frame.with_columns(pl.coalesce("external_id", "external_id_old").alias("external_id"))
        if "correlation" in frame.columns:
            frame = frame.with_columns(pl.col("correlation").replace(0, None))
        return self.on_clock(frame)

    def on_clock(self, frame: pl.DataFrame) -> pl.DataFrame:
        near = pl.col("ts_ns").is_between(self.first, self.last)
        return frame.with_columns(
            pl.when(near).then(pl.col("ts_ns") - self.first).alias("ts_ns"),
        )

    def host(self) -> dict[str, pl.DataFrame]:
        found = {}
        for kind, name in HOST_TABLES.items():
            frame = self.timed(kind)
            if frame is not None:
                found[name] = host_durations(frame, self.end, self.ledger)
        projected = self.timed("device_annotation")
        parts = []
        if "annotations" in found:
            parts.append(found["annotations"].with_columns(pl.lit(False).alias("on_device")))
        if projected is not None:
            projected = host_durations(projected, self.end, self.ledger)
            parts.append(projected.with_columns(pl.lit(True).alias("on_device")))
        if parts:
            found["annotations"] = pl.concat(parts).sort("event")
        return found

    def timed(self, kind: RowKind) -> pl.DataFrame | None:
        """Rows of one kind without those whose time is unusable: they stay in ``events`` alone."""
        frame = self.rows(kind)
        if frame is None:
            return None
        untimed = frame["ts_ns"].null_count()
        self.unplaced += untimed
        return frame.filter(pl.col("ts_ns").is_not_null()) if untimed else frame

    def device(self, runtime: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
        found = {}
        for kind, name in DEVICE_TABLES.items():
            frame = self.rows(kind)
            if frame is not None:
                found[name] = self.located(frame)
        total = sum(frame.height for frame in found.values())
        for name, frame in found.items():
            there = placed(frame, runtime, total, self.ledger)
            found[name] = there.with_columns(pl.col("ts_ns").fill_null(0))
        if found:
            keys = ("event", "device", "stream", "ts_ns", "dur_ns")
            repaired = device_durations(
                pl.concat(frame.select(keys) for frame in found.values()), self.end, self.ledger
            )
            if repaired is not None:
                for name, frame in found.items():
                    found[name] = frame.drop("dur_ns").join(repaired, on="event", how="left", maintain_order="left")
        return found

    def located(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Device and stream: as told by the arguments, else by process and thread of the row."""
        process = self.threads["pid"].gather(frame["thread"]).cast(pl.Int64, strict=False)
        queue = (
            self.threads["tid"]
            .gather(frame["thread"])
            .str.extract(r"^(?:stream )?(-?\d+)$")
            .cast(pl.Int64, strict=False)
        )
        return frame.with_columns(
            pl.coalesce(pl.col("device"), process).alias("device"), pl.coalesce(pl.col("stream"), queue).alias("stream")
        )

    def counters(self) -> pl.DataFrame | None:
        return self.timed("counter")

    def syncs(self) -> pl.DataFrame | None:
        frame = self.timed("sync")
        if frame is None:
            return None
        frame = host_durations(self.located(frame), self.end, self.ledger)
        return frame.with_columns(pl.when(pl.col("stream") >= 0).then(pl.col("stream")).alias("stream"))

    def named_threads(self) -> pl.DataFrame:
        """Threads with the names that metadata gives to them and to their processes."""
        table = self.threads
        given = self.columns.rows("metadata")
        if given is None:
            given = pl.DataFrame(schema={"name": pl.String, "thread": pl.Int32, "given": pl.String})
        else:
            given = given.select(
                pl.col("name").cast(pl.String),
                "thread",
                pl.col("given").cast(pl.String),
            )
        of_thread = given.filter(pl.col("name") == "thread_name").select("thread", pl.col("given").alias("thread_name"))
        of_process = (
            given.filter(pl.col("name") == "process_name")
            .join(table, on="thread")
            .select("pid", pl.col("given").alias("process_name"))
        )
        return (
            table.join(of_process.unique("pid", keep="last"), on="pid", how="left", maintain_order="left")
            .join(of_thread.unique("thread", keep="last"), on="thread", how="left", maintain_order="left")
            .select("thread", "pid", "tid", "process_name", "thread_name")
        )

    def all_events(self, found: dict[str, pl.DataFrame]) -> pl.DataFrame:
        """The table ``events``, with durations as repaired in the other tables."""
        frame = self.on_clock(self.columns.events())
        repaired = (
            pl.concat(found[name].select("event", "dur_ns") for name in SPANS if name in found) if found else None
        )
        if repaired is None or not (
            self.ledger.count("impossible_device_durations") or self.ledger.count("impossible_host_durations")
        ):
            return frame.with_columns(pl.when(pl.col("phase").cast(pl.String) == "X").then("dur_ns").alias("dur_ns"))
        right = repaired.rename({"dur_ns": "right_ns"})
        return (
            frame.join(right, on="event", how="left", maintain_order="left")
            .with_columns(pl.coalesce("right_ns", pl.col("dur_ns").clip(0)).alias("dur_ns"))
            .drop("right_ns")
        )


def assemble(columns: Columns, ledger: Ledger) -> Recorded:
    """Fill the recorded tables.

    Args:
        columns: everything that was read; at least one event.
        ledger: counts what had to be repaired.
    """
    parts = _Assembly(columns, ledger)
    found = parts.host()
    found |= parts.device(found.get("runtime"))
    for name, frame in (("syncs", parts.syncs()), ("counters", parts.counters()), ("memory", parts.timed("memory"))):
        if frame is not None:
            found[name] = frame
    flows = parts.timed("flow")
    if flows is not None:
        found["flows"] = _flows(flows)
    ledger.note(
        "unusable_times",
        parts.unplaced,
        lambda count: f"{plural(count, 'event')} without a usable time: left out of every table but events.",
        effect="device_time",
        share=parts.unplaced / max(1, parts.count),
    )
    found["events"] = parts.all_events(found)
    found["threads"] = parts.named_threads()
    if "annotations" in found:
        found["steps"] = steps(found["annotations"], ledger)
    if "kernels" in found:
        found["collectives"] = _collectives(found["kernels"])
        communicates = pl.col("event").is_in(found["collectives"]["event"].implode())
        found["kernels"] = found["kernels"].with_columns(
            communicates.alias("collective"), (pl.col("occupancy_pct") / 100).alias("occupancy_share")
        )
    if "copies" in found:
        found["copies"] = _copies(found["copies"])
    if "sets" in found:
        found["sets"] = found["sets"].with_columns(pl.coalesce("bytes", "size").alias("size_bytes"))
    _repair_paths(found, ledger)
    return Recorded(tables={name: _declared(name, frame) for name, frame in found.items()}, earliest_ns=parts.first)


def _declared(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of a table; a value that its column cannot hold is damage and becomes null."""
    columns = []
    for key, dtype in DECLARED[name].schema.items():
        if key in frame.columns:
            column = frame[key]
            columns.append(column if column.dtype == dtype else column.cast(dtype, strict=False))
        else:
            columns.append(pl.Series(key, [None], dtype=dtype).new_from_index(0, frame.height))
    return pl.DataFrame(columns)


def _flows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.coalesce("category", "name").alias("kind"), (pl.col("phase").cast(pl.String) == "s").alias("start")
    )


def _copies(frame: pl.DataFrame) -> pl.DataFrame:
    name = pl.col("name").cast(pl.String)
    told = pl.coalesce(pl.col("kind").cast(pl.String), pl.col("direction").cast(pl.String))
    return frame.with_columns(
        pl.coalesce(name.str.extract(COPY_KIND), told.replace(COPY_WORDS).str.extract(COPY_KIND))
        .cast(TEXT)
        .alias("kind"),
        pl.when(name.str.contains("Pageable"))
        .then(True)
        .when(name.str.contains("Pinned|Managed"))
        .then(False)
        .alias("pageable"),
        pl.coalesce("bytes", "size").alias("size_bytes"),
    )


def _collectives(kernels: pl.DataFrame) -> pl.DataFrame:
    names = kernels["name"].unique()
    by_name = pl.DataFrame({"name": names}).with_columns(pl.col("name").cast(pl.String).alias("text"))
    by_name = by_name.with_columns(
        pl.Series([text is not None and is_collective(text) for text in by_name["text"]], dtype=pl.Boolean).alias(
            "named"
        )
    )
    frame = kernels.join(by_name, on="name", how="left", maintain_order="left", nulls_equal=True)
    told = pl.col("operation").is_not_null()
    frame = frame.filter(told | pl.col("named"))
    words = pl.coalesce(pl.col("operation").cast(pl.String), pl.col("text"))
    chosen = frame.with_columns(words.alias("words"))["words"]
    operations = {word: operation_of(word) for word in chosen.unique().to_list() if word is not None}
    fallback = pl.when(told).then(pl.col("operation").cast(pl.String))
    return frame.select(
        "event",
        pl.coalesce(words.replace_strict(operations, default=None, return_dtype=pl.String), fallback)
        .cast(TEXT)
        .alias("operation"),
        pl.when(told).then(pl.lit("metadata")).otherwise(pl.lit("name")).alias("source"),
        "dtype",
        "in_elements",
        "out_elements",
        "group_size",
        pl.col("group_ranks").str.strip_chars('"'),
        "group_name",
        "sequence",
    )


def _repair_paths(found: dict[str, pl.DataFrame], ledger: Ledger) -> None:
    """Put right, in all tables, the names that legal escapes have spoilt."""
    for column, source in (("name", "events"), ("call_stack", "ops")):
        if source not in found:
            continue
        texts = found[source][column].unique().cast(pl.String).drop_nulls()
        meant = {text: literal_path(text) for text in texts.filter(texts.str.contains(CONTROL))}
        changed = {text: path for text, path in meant.items() if path != text}
        if not changed:
            continue
        spoilt = found[source][column].cast(pl.String).is_in(list(changed))
        note_repair(ILLEGAL_ESCAPES, ledger, int(spoilt.sum()))
        for name, frame in found.items():
            if column in frame.columns:
                words = frame[column].cast(pl.String).replace(changed).cast(TEXT)
                found[name] = frame.with_columns(words.alias(column))


def linked_share(found: dict[str, pl.DataFrame]) -> float | None:
    """Share of kernels whose launch is in the file: by correlation, else by a flow that has both ends."""
    kernels = found.get("kernels")
    if kernels is None or not kernels.height:
        return None
    linked = pl.lit(False)
    if "runtime" in found:
        linked = pl.col("correlation").is_in(found["runtime"]["correlation"].drop_nulls().implode()).fill_null(False)
    if "flows" in found:
        flows = found["flows"].filter(pl.col("kind").cast(pl.String) == "ac2g")
        started = flows.filter("start")["flow_id"].drop_nulls()
        heads = flows.filter(~pl.col("start") & pl.col("flow_id").is_in(started.implode()))["ts_ns"]
        linked = linked | pl.col("ts_ns").is_in(heads.implode())
    return int(kernels.select(linked.sum()).item()) / kernels.height


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
