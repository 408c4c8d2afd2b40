"""Several recordings at once are the same as one after the other."""

import gzip
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from slipstream.ingest import locate, parallel, read, read_all
from slipstream.model import NotATrace
from slipstream.store import MEASURED, Trace

GC_PAUSES = next(table for table in MEASURED if table.name == "gc_pauses")


def assert_same(traces: list[Trace], others: list[Trace]) -> None:
    assert len(traces) == len(others)
    for one, other in zip(traces, others, strict=True):
        assert (one.source, one.integrity, one.element_count, one.packages, list(one)) == (
            other.source,
            other.integrity,
            other.element_count,
            other.packages,
            list(other),
        )
        for name in one:
            assert_frame_equal(one.table(name), other.table(name), categorical_as_str=True)


@pytest.fixture
def elsewhere(monkeypatch) -> list[Trace | None]:
    """What other processes gave back, on a machine of two cores."""
    answers: list[Trace | None] = []
    real = parallel._read_elsewhere

    def noted(*arguments):
        answers.append(real(*arguments))
        return answers[-1]

    monkeypatch.setattr(parallel, "_read_elsewhere", noted)
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    return answers


@pytest.fixture
def ranks(kineto) -> Path:
    for rank in range(3):
        events = [
            kineto.op("aten::mm", 100 + rank, 5),
            kineto.launch(1, 101),
            kineto.kernel(1, 110, 3, name=f"k{rank}"),
        ]
        text = kineto.text(events, distributedInfo={"rank": rank, "world_size": 3}) + " " * (1000 if rank < 2 else 0)
        kineto.write(text[: -40 if rank == 1 else None], f"logs/rank{rank}.json")
    return Path(kineto.folder / "logs")


def test_the_same_in_the_same_order(ranks, elsewhere):
    found = locate(ranks)
    assert_same(read_all(found, large_bytes=1), [read(recording) for recording in found])
    assert len(elsewhere) == 3
    assert None not in elsewhere


def test_small_ones_and_a_single_large_one_stay_here(ranks, elsewhere, kineto):
    found = locate(ranks)
    assert_same(read_all(found), [read(recording) for recording in found])
    assert_same(read_all(found[:1], large_bytes=1), [read(found[0])])
    assert elsewhere == []


def test_run_folders_with_what_was_measured(kineto, elsewhere):
    kineto.write('{"packages": ["torch", "numpy"]}', "run.json")
    for rank in range(2):
        kineto.write(gzip.compress(kineto.text([kineto.op()]).encode()), f"rank{rank}/trace.json.gz")
        GC_PAUSES.empty().write_parquet(kineto.folder / f"rank{rank}" / "gc_pauses.parquet")
    found = locate(kineto.folder)
    first = read_all(found, large_bytes=1)
    assert None not in elsewhere
    assert len(elsewhere) == 2
    assert all(trace.has("gc_pauses") for trace in first), "measured, and there were none"
    assert_same(first, [read(recording) for recording in found])
    assert_same(read_all(found, large_bytes=1), first)
    assert len(elsewhere) == 2, "what is kept beside a rank needs no process"


def test_the_first_refusal_is_raised_as_it_is(ranks, elsewhere):
    (ranks / "rank1.json").write_text('{"traceEvents": []}')
    with pytest.raises(NotATrace) as alone:
        read(locate(ranks)[1])
    with pytest.raises(NotATrace) as together:
        read_all(locate(ranks), large_bytes=1)
    assert str(together.value) == str(alone.value)


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python3"])
def test_without_other_processes_all_is_read_here(ranks, elsewhere, monkeypatch, tmp_path, python):
    stand_in = tmp_path / "python-that-fails"
    stand_in.symlink_to(python)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    found = locate(ranks)
    assert_same(read_all(found, large_bytes=1), [read(recording) for recording in found])
    assert elsewhere == [None, None, None]


def test_the_users_script_is_not_run_again(ranks, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "print('trains')\n"
        "from slipstream.ingest import locate, parallel\n"
        "parallel._cores = lambda: 2\n"
        f"print(len(parallel.read_all(locate({str(ranks)!r}), large_bytes=1)))\n"
    )
    (tmp_path / "polars.py").write_text("raise RuntimeError('a file of the user, not the library')")
    run = subprocess.run([sys.executable, "-P", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert run.stdout.split() == ["trains", "3"]
    assert run.stderr == ""


def test_texts_that_repeat_stay_categories(ranks, elsewhere):
    trace = read_all(locate(ranks), large_bytes=1)[0]
    assert trace.kernels["name"].dtype == pl.Categorical
    assert trace.kernels["name"].to_list() == ["k0"]
