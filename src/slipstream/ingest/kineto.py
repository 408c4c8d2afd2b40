"""One trace file of ``torch.profiler`` (Kineto JSON, any schema, any damage) -> ``Trace``."""

import re

import polars as pl

from slipstream.ingest import clock, description
from slipstream.ingest.columns import Columns
from slipstream.ingest.decompression import Decompression, Readable
from slipstream.ingest.elements import Document
from slipstream.ingest.ledger import Ledger, plural
from slipstream.ingest.recorded_tables import assemble, linked_share
from slipstream.model import BadInput, NotATrace, Source, TraceFormat
from slipstream.store import Trace

_PID = re.compile(rb'"pid"\s*:\s*"?(\d+)')
LAUNCH = r"(?i)launch"
GRAPH_LAUNCH = r"(?i)graph_?launch"
MISSING_SHARE = 0.10
"""Launches without a device row, from which on whole streams are taken to be missing."""
MAGIC = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive",
    b"SQLi": "an SQLite database",
    b"\x7fELF": "a program",
    b"BZh": "bzip2 data",
    b"\xfd7zX": "xz data",
}


def read_kineto(
    file: Readable, path: str, format_: TraceFormat, rank: int | None, empty_beside: tuple[str, ...] = ()
) -> Trace:
    """Read a trace.

    Args:
        file: opened for reading bytes, seekable.
        path: how the user knows it, for messages and ``source``.
        format_: what it is part of.
        rank: rank by the name of the file or folder; used where the file tells none.
        empty_beside: traces of the same directory that hold nothing; told as an issue.
    Raises:
        NotATrace: not one complete event in it.
        BadInput: the output of two processes is mixed in it.
    """
    ledger = Ledger()
    data = Decompression(file)
    document = Document(iter(data), ledger)
    columns = Columns(ledger)
    for batch in document.batches():
        columns.add(batch)
    _note_damage(document, data, ledger)
    if all(kind == "metadata" for kind in columns.kinds()):
        raise NotATrace(_why_not(document, data, path))
    _refuse_mixed(document, columns, path)
    ledger.note(
        "second_trace", document.second_document, "The beginning of another trace lies in the file.", effect="cut"
    )
    ledger.note(
        "empty_elements",
        columns.nothing(),
        lambda count: f"{plural(count, 'element')} that is null, empty or without a phase: left out.",
        effect="none",
    )
    ledger.note(
        "empty_files",
        len(empty_beside),
        lambda count: (
            f"{plural(count, 'trace')} beside this one, such as {empty_beside[0]}, is empty: ranks are missing."
        ),
        effect="none",
    )
    recorded = assemble(columns, ledger)
    _note_missing_device_rows(recorded.tables, ledger)
    values = description.top_level(document.header, document.tail, ledger)
    return Trace(
        source=_source(values, recorded.tables, recorded.earliest_ns, path, format_, rank),
        integrity=ledger.integrity(linked_share(recorded.tables)),
        tables=recorded.tables,
        element_count=document.elements,
    )


def _note_damage(document: Document, data: Decompression, ledger: Ledger) -> None:
    seen = document.elements
    if document.found_array and not document.closed:
        lost = f", {plural(document.lost_bytes, 'byte')} of one more are lost" if document.lost_bytes else ""
        why = f" ({data.damage})" if data.damage else ""
        ledger.note(
            "cut",
            1,
            (
                f"The file is cut{why}: {plural(seen - bool(document.lost_bytes), 'complete event')} used{lost}; "
                "how many more there were is not known."
            ),
            effect="cut",
        )
    elif document.found_array and document.header != b"[" and not document.tail.rstrip().endswith(b"}"):
        ledger.note("cut", 1, "The file is cut after its last event: what it tells about itself may be missing.", "cut")
    elif data.damage:
        ledger.note("damaged_compression", 1, f"All events are there, but {data.damage}.", effect="cut")
    ledger.note(
        "unreadable_elements",
        document.dropped,
        lambda count: f"{plural(count, 'element')} could not be read: left out.",
        effect="device_time",
        share=document.dropped / max(1, seen),
    )


def _why_not(document: Document, data: Decompression, path: str) -> str:
    size = data.read_bytes
    if not size:
        return f"{path} is empty: the job died before it could write its trace. Record it again."
    if not document.total_bytes or (data.damage and not document.found_array):
        return f"{path} ends before its first complete event ({data.damage or 'no data in it'}). Record it again."
    if not document.found_array:
        for magic, what in MAGIC.items():
            if document.start.startswith(magic):
                return f"{path} is {what}, not a trace: name the .json or .json.gz that torch.profiler exported."
        if document.start[:1] == b"{":
            return (
                f"{path} is JSON without traceEvents, so it is not a trace of torch.profiler: name the exported trace."
            )
        return f"{path} is not a trace: it is no JSON. Name the .json or .json.gz that torch.profiler exported."
    if document.closed:
        return (
            f"{path} holds no event besides metadata: nothing ran while it was recorded. Record some steps of training."
        )
    return f"{path} is cut before its first complete event: the job died while writing it. Record it again."


def _refuse_mixed(document: Document, columns: Columns, path: str) -> None:
    if not (document.second_document or document.dropped):
        return
    table = columns.threads()
    pids: dict[str, int] = {}
    for kind in ("op", "python", "runtime", "annotation"):
        frame = columns.rows(kind)
        if frame is not None:
            owners = table["pid"].gather(frame["thread"])
            for pid, count in owners.value_counts().iter_rows():
                if pid is not None and pid.isdigit():
                    pids[pid] = pids.get(pid, 0) + count
    if document.second_document:
        for found in _PID.findall(document.tail):
            pids.setdefault(found.decode(), 0)
    if len(pids) > 1:
        first, second = sorted(pids, key=lambda pid: (-pids[pid], pid))[:2]
        raise BadInput(
            f"{path} holds the output of several processes mixed into each other (pids {first} and {second}): "
            "its events cannot be told apart. Let every process export to a file of its own."
        )


def _note_missing_device_rows(tables: dict[str, pl.DataFrame], ledger: Ledger) -> None:
    runtime = tables.get("runtime")
    if runtime is None:
        return
    launches = runtime.filter(pl.col("name").cast(pl.String).str.contains(LAUNCH) & pl.col("correlation").is_not_null())
    known = [tables[name]["correlation"].drop_nulls() for name in ("kernels", "copies", "sets") if name in tables]
    here = pl.concat(known) if known else pl.Series(dtype=pl.Int64)
    lost = launches.filter(~pl.col("correlation").is_in(here.implode()))
    # One launch of a graph stands for all its kernels, so few of them missing can be most of the work.
    graph = pl.col("name").cast(pl.String).str.contains(GRAPH_LAUNCH)
    counts = (lost.height, launches.height), (lost.filter(graph).height, launches.filter(graph).height)
    if any(missing and missing >= MISSING_SHARE * all_ for missing, all_ in counts):
        ledger.note(
            "missing_device_events",
            lost.height,
            lambda count: (
                f"{plural(count, 'launch', 'launches')} of {launches.height:,} without an event on the device: "
                "what the device did then is unknown, not idle."
            ),
            effect="lower_bound",
        )


def _source(
    values: dict[str, object],
    tables: dict[str, pl.DataFrame],
    earliest_ns: int,
    path: str,
    format_: TraceFormat,
    rank: int | None,
) -> Source:
    devices = [tables[name]["device"] for name in ("kernels", "copies", "sets") if name in tables]
    used = pl.concat(devices).drop_nulls().mode().sort() if devices else pl.Series(dtype=pl.Int32)
    name = description.device_name(values, used[0] if used.len() else None)
    categories = tables["events"]["category"].unique().cast(pl.String).drop_nulls().to_list()
    calls = tables["runtime"]["name"].unique().cast(pl.String) if "runtime" in tables else pl.Series(dtype=pl.String)
    told_rank, world_size = description.ranks(values)
    origin = clock.origin_ns(earliest_ns, description.whole_number(values.get("baseTimeNanoseconds")))
    return Source(
        path=path,
        format=format_,
        origin_ns=None if origin is None else str(origin),
        torch_version=description.torch_version(values),
        device=name,
        device_kind=description.device_kind(values, name, set(categories), calls, bool(devices)),
        rank=told_rank if told_rank is not None else rank,
        world_size=world_size,
    )
