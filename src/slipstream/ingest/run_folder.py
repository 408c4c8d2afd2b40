"""One rank of a run folder -> ``Trace``: what the profiler recorded and what slipstream measured itself."""

from functools import cache, partial
from pathlib import Path

import msgspec
import polars as pl

from slipstream.ingest.kineto import read_kineto
from slipstream.ingest.ledger import Ledger
from slipstream.ingest.statements import statements
from slipstream.ingest.table_cache import Stamps, cached, keep, stamps
from slipstream.model import BadInput, DeviceKind, Integrity, NotATrace, Source
from slipstream.store import LINES, MEASURED, Deferred, RunFolder, RunInfo, Trace

TRACE = "trace.json.gz"
PLACES = "places.json.gz"
LINES_FILE = "lines.parquet"
POSITIONS = ("start_ns", "ts_ns")
NO_OUTCOME = "the run left no word about why"


def read_run_folder(root: Path, rank: int, path: str) -> Trace:
    """Read what one rank left behind.

    Args:
        root: the run folder.
        rank: which rank.
        path: how the user knows the folder, for ``source``.
    Raises:
        NotATrace: neither a readable trace nor a measured table.
    """
    folder = RunFolder(root)
    place = folder.rank(rank)
    ledger = Ledger()
    info = _info(folder, ledger)
    recorded = _recorded(place, info, ledger)
    measured = _measured(place, ledger)
    if recorded is None and not measured:
        raise NotATrace(
            f"{place} holds neither a trace nor a measured table: {_outcome(info)}. "
            "Run the job again for some more steps."
        )
    tables: dict[str, pl.DataFrame | Deferred] = {} if recorded is None else recorded.held()
    origin = _origin(recorded, measured, ledger)
    for name, frame in measured.items():
        tables[name] = frame.with_columns(
            (pl.col(column) - origin).alias(column) for column in POSITIONS if column in frame.columns
        )
    return Trace(
        source=_source(path, rank, info, recorded, origin),
        integrity=_integrity(recorded, ledger),
        tables=tables,
        element_count=0 if recorded is None else recorded.element_count,
        packages=frozenset(info.packages) if info is not None and info.packages else None,
    )


def _info(folder: RunFolder, ledger: Ledger) -> RunInfo | None:
    try:
        return folder.read_info()
    except (OSError, msgspec.DecodeError):
        ledger.note(
            "unreadable_run_info",
            1,
            "run.json cannot be read: versions and packages are not known.",
            effect="none",
        )
        return None


def _outcome(info: RunInfo | None) -> str:
    return (info.outcome if info is not None else None) or NO_OUTCOME


def _recorded(place: Path, info: RunInfo | None, ledger: Ledger) -> Trace | None:
    """What the profiler recorded, with ``statements`` where the extra step was; None without a window."""
    files = stamps(place, (TRACE, PLACES, LINES_FILE))
    why = _outcome(info)
    if TRACE in files:
        fresh = cache(partial(_fresh, place, files))
        trace = cached(place, files, fresh)
        if trace is not None:
            return trace
        try:
            trace = fresh()
        except BadInput as error:
            why = str(error)
        else:
            keep(place, files, trace)
            return trace
    ledger.note("no_window", 1, f"No window was recorded: {why}", effect="lower_bound")
    return None


def _fresh(place: Path, files: Stamps) -> Trace:
    """Read the profiler's file.

    Raises:
        BadInput: it cannot be read.
    """
    with (place / TRACE).open("rb") as file:
        trace = read_kineto(file, str(place / TRACE), "run_folder", None)
    return _with_statements(trace, place) if PLACES in files and LINES_FILE in files else trace


def _with_statements(trace: Trace, place: Path) -> Trace:
    try:
        with (place / PLACES).open("rb") as file:
            places = read_kineto(file, str(place / PLACES), "run_folder", None)
        found = statements(places, LINES.frame(pl.read_parquet(place / LINES_FILE, glob=False)))
    except (BadInput, ValueError, OSError, pl.exceptions.PolarsError) as error:
        ledger = Ledger()
        ledger.note("no_statements", 1, f"Statements cannot be told, functions only: {error}", effect="none")
        return _rebuilt(trace, {}, _integrity(trace, ledger))
    return _rebuilt(trace, {"statements": found}, trace.integrity)


def _rebuilt(trace: Trace, further: dict[str, pl.DataFrame], integrity: Integrity) -> Trace:
    return Trace(trace.source, integrity, trace.held() | further, element_count=trace.element_count)


def _measured(place: Path, ledger: Ledger) -> dict[str, pl.DataFrame]:
    """The measured tables, positions still in epoch ns."""
    found = {}
    for table in MEASURED:
        file = place / f"{table.name}.parquet"
        if table.name == "statements" or not file.is_file():
            continue
        try:
            frame = pl.read_parquet(file, glob=False)
            found[table.name] = table.frame(frame.select(name for name in frame.columns if name in table.schema))
        except (OSError, pl.exceptions.PolarsError) as error:
            ledger.note(
                f"unreadable_{table.name}",
                1,
                f"{table.name}.parquet cannot be read: {error}",
                effect="none",
            )
    return found


def _origin(recorded: Trace | None, measured: dict[str, pl.DataFrame], ledger: Ledger) -> int:
    """Absolute time of position 0 in epoch ns."""
    if recorded is not None and recorded.source.origin_ns is not None:
        return int(recorded.source.origin_ns)
    times = [frame[column].min() for frame in measured.values() for column in POSITIONS if column in frame.columns]
    known = [time for time in times if isinstance(time, int)]
    if recorded is not None and known:
        ledger.note(
            "unaligned_clocks",
            1,
            ("The trace tells no absolute time: its tables and the measured ones cannot be laid over each other."),
            effect="none",
        )
    return min(known, default=0)


def _source(path: str, rank: int, info: RunInfo | None, recorded: Trace | None, origin: int) -> Source:
    seen = recorded.source if recorded is not None else None
    kind: DeviceKind = seen.device_kind if seen is not None else "unknown"
    if info is not None and info.device_kind != "unknown":
        kind = msgspec.convert(info.device_kind, DeviceKind)
    return Source(
        path=path,
        format="run_folder",
        origin_ns=str(origin) if origin else None,
        torch_version=(info.torch_version if info else None) or (seen.torch_version if seen else None),
        device=(info.device if info else None) or (seen.device if seen else None),
        device_kind=kind,
        rank=rank,
        world_size=(info.world_size if info else None) or (seen.world_size if seen else None),
    )


def _integrity(recorded: Trace | None, ledger: Ledger) -> Integrity:
    added = ledger.integrity(None)
    if recorded is None:
        return added
    before = recorded.integrity
    return Integrity(
        grade=max(before.grade, added.grade),
        issues=before.issues + added.issues,
        linked_kernel_share=before.linked_kernel_share,
    )
