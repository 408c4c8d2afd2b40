"""Run folders: one clock for trace and measured tables, statements, the cache, and what is missing."""

import gzip

import fsspec
import polars as pl
import pytest

from slipstream.ingest import locate, read
from slipstream.ingest.statements import active_lines
from slipstream.model import NotATrace, NotEnoughData
from slipstream.store import DECLARED, LINES, RunFolder, RunInfo

BASE = 1_700_000_000_000_000_000
INFO = RunInfo(
    command=["train.py"],
    working_directory="/home/u",
    started_utc="2026-01-01T00:00:00Z",
    slipstream_version="0",
    python_version="3.11",
    torch_version="2.13.0",
    device_kind="cpu",
    world_size=2,
    packages=["torch", "numpy"],
    outcome="cut short: the job ended in step 3",
    outcome_code="cut_short",
)


@pytest.fixture
def run(tmp_path, kineto):
    """A folder with one rank: a trace that begins 5 us after the first measured step."""
    folder = RunFolder(tmp_path / "run")
    folder.write_info(INFO)
    place = folder.rank(0)
    place.mkdir()
    events = [kineto.op(ts=5.0, dur=2.0), kineto.mark("ProfilerStep#1", 6.0, 3.0)]
    (place / "trace.json.gz").write_bytes(gzip.compress(kineto.text(events, baseTimeNanoseconds=BASE).encode()))
    steps = DECLARED["job_steps"].frame({"number": [0, 1], "start_ns": [BASE, BASE + 6000], "dur_ns": [6000, 3000]})
    steps.write_parquet(place / "job_steps.parquet")
    return folder


def test_measured_positions_are_on_the_clock_of_the_trace(run):
    (recording,) = locate(run.root)
    trace = read(recording)
    assert trace.source.format == "run_folder"
    assert trace.source.origin_ns == str(BASE + 5000)
    assert trace.ops["ts_ns"].to_list() == [0]
    assert trace.job_steps.select("start_ns", "dur_ns").rows() == [(-5000, 6000), (1000, 3000)]
    assert trace.steps["start_ns"].to_list() == [1000]
    assert trace.packages == {"torch", "numpy"}
    assert (trace.source.torch_version, trace.source.device_kind, trace.source.rank) == ("2.13.0", "cpu", 0)
    assert trace.source.world_size == 2
    with pytest.raises(NotEnoughData):
        trace.table("gc_pauses")


def test_without_a_window_the_measured_tables_stay_readable(run, issues):
    (run.rank(0) / "trace.json.gz").unlink()
    trace = read(run.root)
    assert trace.events.height == 0
    assert trace.job_steps["start_ns"].to_list() == [0, 6000]
    assert trace.source.origin_ns == str(BASE)
    assert issues(trace) == {"no_window": 1}
    assert "the job ended in step 3" in trace.integrity.issues[0].text
    assert trace.integrity.grade == "E"


def test_a_trace_that_is_beyond_reading_is_no_window(run, issues):
    (run.rank(0) / "trace.json.gz").write_bytes(b"")
    trace = read(run.root)
    assert issues(trace) == {"no_window": 1}
    assert "is empty" in trace.integrity.issues[0].text


def test_nothing_recorded_at_all(run):
    for file in run.rank(0).iterdir():
        file.unlink()
    run.rank(0).joinpath("note").write_text("x")
    with pytest.raises(NotATrace, match="the job ended in step 3"):
        read(run.root)


def test_damaged_run_info_and_table_are_told(run, issues):
    run.info_path.write_text("{")
    run.rank(0).joinpath("gc_pauses.parquet").write_bytes(b"PAR1 no")
    trace = read(run.root)
    assert trace.ops.height == 1
    assert trace.packages is None
    assert issues(trace) == {"unreadable_run_info": 1, "unreadable_gc_pauses": 1}


def test_remote_run_folder(run):
    system = fsspec.filesystem("memory")
    for file in run.root.rglob("*"):
        if file.is_file():
            system.pipe(f"/runs/one/{file.relative_to(run.root)}", file.read_bytes())
    trace = read("memory://runs/one")
    assert trace.source.path == "memory://runs/one"
    assert trace.job_steps["start_ns"].to_list() == [-5000, 1000]


def test_ranks_come_in_order(run, kineto):
    for rank in (10, 2):
        run.rank(rank).mkdir()
        run.rank(rank).joinpath("trace.json.gz").write_bytes(gzip.compress(kineto.text([kineto.op()]).encode()))
    assert [recording.rank for recording in locate(run.root)] == [0, 2, 10]
    assert [read(recording).source.rank for recording in locate(run.root)] == [0, 2, 10]


def test_the_cache_gives_the_same_and_notices_changes(run, kineto):
    first = read(run.root)
    place = run.rank(0)
    assert (place / "tables" / "tables.json").is_file()
    trace_file = place / "trace.json.gz"
    stamp = trace_file.stat()
    size = stamp.st_size
    trace_file.write_bytes(b"x" * size)  # never read: the cache is valid by size and time
    import os

    os.utime(trace_file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    second = read(run.root)
    assert second.source == first.source
    assert second.integrity == first.integrity
    assert second.element_count == first.element_count
    for name in first:
        assert second.table(name).equals(first.table(name)), name
    trace_file.write_bytes(gzip.compress(kineto.text([kineto.op("aten::new"), kineto.op()]).encode()))
    assert read(run.root).ops["name"].to_list() == ["aten::new", "aten::add"]


def test_a_spoilt_cache_is_read_past(run):
    expected = read(run.root).ops
    for name in ("ops.parquet", "tables.json"):
        (run.rank(0) / "tables" / name).write_bytes(b"no")
        assert read(run.root).ops.equals(expected)


def test_opening_a_cache_reads_no_table(run, monkeypatch):
    expected = read(run.root).ops
    opened = read(run.root)
    assert "ops 1" in repr(opened)
    asked = []
    monkeypatch.setattr(pl, "read_parquet", lambda path, **_: asked.append(path.name) or expected)
    assert not asked
    assert opened.ops.equals(expected)
    assert opened.ops.equals(expected)
    assert asked == ["ops.parquet"]


def test_a_table_spoilt_behind_its_footer_is_read_from_the_recording(run):
    expected = read(run.root).ops
    file = run.rank(0) / "tables" / "ops.parquet"
    sound = file.read_bytes()
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    file.write_bytes(b"PAR1" + b"\xff" * (footer - 4) + sound[footer:])
    opened = read(run.root)
    assert opened.ops.equals(expected)
    assert not (run.rank(0) / "tables" / "tables.json").exists()
    assert read(run.root).ops.equals(expected)
    assert (run.rank(0) / "tables" / "tables.json").exists()


def test_a_folder_that_cannot_be_written_to(run, monkeypatch):
    from pathlib import Path

    def refuse(*_args, **_more):
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert read(run.root).ops.height == 1
    assert not (run.rank(0) / "tables").exists()


def lines(*events):
    """(ts, function, line) of file train.py; line None: returned."""
    columns = {
        "ts_ns": [BASE + at for at, _, _ in events],
        "thread_id": [7] * len(events),
        "file": ["train.py"] * len(events),
        "function": [function for _, function, _ in events],
        "def_line": [{"main": 1, "step": 10, "loss": 20}[function] for _, function, _ in events],
        "line": [-1 if line is None else line for _, _, line in events],
    }
    return LINES.frame(columns)


def test_ops_get_the_innermost_active_statement(run, kineto):
    place = run.rank(0)
    ops = [
        kineto.op("aten::early", 0.5, 0.1),
        kineto.op("aten::zeros", 1.5, 0.2),
        kineto.op("aten::mm", 2.5, 1.0),
        kineto.op("aten::mm", 3.2, 0.1),
        kineto.op("aten::sum", 4.5, 0.1),
        kineto.op("aten::mm", 6.0, 0.1),
        kineto.op("aten::mul", 7.0, 0.1),
        kineto.op("aten::late", 9.5, 0.1),
        kineto.op("aten::mm", 2.6, 1.0) | {"tid": 8},
    ]
    (place / "places.json.gz").write_bytes(gzip.compress(kineto.text(ops, baseTimeNanoseconds=BASE).encode()))
    lines(
        (1000, "main", 2),
        (2000, "main", 3),
        (2200, "step", 11),  # main calls step in line 3
        (3000, "step", 12),
        (4000, "loss", 21),  # step calls loss in line 12
        (5000, "loss", None),
        (6500, "step", None),
        (8000, "main", 4),
        (9000, "main", None),
    ).write_parquet(place / "lines.parquet")
    found = read(run.root).statements
    assert found.select("op", "nth", "function", "line").rows() == [
        ("aten::zeros", 0, "main", 2),
        ("aten::mm", 0, "step", 11),
        ("aten::mm", 1, "step", 12),
        ("aten::sum", 0, "loss", 21),
        ("aten::mm", 2, "step", 12),  # loss has returned
        ("aten::mul", 0, "main", 3),  # step has returned, main is still in line 3
    ]
    assert found["file"].unique().to_list() == ["train.py"]
    assert read(run.root).statements.equals(found)  # from the cache


def test_recursion_and_missed_returns():
    frame = lines(
        (1, "main", 2), (2, "step", 11), (3, "loss", 21), (4, "step", None), (5, "main", None), (6, "main", None)
    )
    assert active_lines(frame)["line"].to_list() == [2, 11, 21, 2, None, None]


def test_statements_that_cannot_be_told(run, issues, kineto):
    place = run.rank(0)
    (place / "places.json.gz").write_bytes(b"")
    lines((1, "main", 2)).write_parquet(place / "lines.parquet")
    trace = read(run.root)
    assert issues(trace) == {"no_statements": 1}
    assert trace.integrity.grade == "A"
    assert not trace.has("statements")


def test_threads_do_not_mix():
    frame = pl.concat(
        [lines((1, "main", 2)), lines((2, "step", 11)).with_columns(pl.lit(8, pl.Int64).alias("thread_id"))]
    )
    assert active_lines(frame).select("thread_id", "line").rows() == [(7, 2), (8, 11)]
