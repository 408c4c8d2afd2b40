"""What lies under a path."""

import gzip

import fsspec
import pytest

from slipstream import load
from slipstream.ingest import locate, read
from slipstream.model import BadInput, MissingInput, NotATrace


def test_tensorboard_directory_of_several_workers(kineto, tmp_path):
    text = kineto.text([kineto.op()])
    kineto.write(text, "logs/host_rank1.123.pt.trace.json")
    kineto.write(gzip.compress(text.encode()), "logs/host_rank0.456.pt.trace.json.gz")
    kineto.write("{}", "logs/other.json")
    found = locate(tmp_path / "logs")
    assert [(recording.format, recording.rank) for recording in found] == [
        ("tensorboard_dir", 0),
        ("tensorboard_dir", 1),
    ]
    assert [trace.source.rank for trace in load(tmp_path / "logs")] == [0, 1]


def test_directory_of_ranks_passes_other_files_over(kineto, tmp_path):
    text = kineto.text([kineto.op()])
    for name in ("rank10/trace.json", "rank9/trace.json", "notes.json", "readme.txt"):
        kineto.write({"notes.json": '{"a": 1}', "readme.txt": "x"}.get(name, text), name)
    assert [(recording.format, recording.rank) for recording in locate(tmp_path)] == [("kineto", 9), ("kineto", 10)]


def test_empty_files_beside_traces_are_told(kineto, tmp_path, issues):
    kineto.write(kineto.text([kineto.op()]), "rank0.json")
    kineto.write("", "rank1.json")
    assert issues(load(tmp_path)) == {"empty_files": 1}
    kineto.write("", "rank0.json")
    with pytest.raises(NotATrace, match="only empty files"):
        locate(tmp_path)


def test_rank_of_a_run_folder(kineto, tmp_path):
    kineto.write("{}", "run.json")
    for name in ("trace", "places"):
        kineto.write(kineto.text([kineto.op()]), f"rank3/{name}.json.gz")
    (found,) = locate(tmp_path / "rank3")
    assert (found.format, found.rank, found.path) == ("run_folder", 3, str(tmp_path))


def test_one_trace_is_no_list(kineto):
    assert load(kineto.write(kineto.text([kineto.op()]))).ops.height == 1


@pytest.mark.parametrize("name", [None, "readme.txt", "image.png", "config.json"])
def test_directory_without_a_trace(kineto, tmp_path, name):
    if name:
        kineto.write('{"a": 1}', name)
    with pytest.raises(NotATrace, match="holds no trace"):
        locate(tmp_path)


def test_folder_of_run_folders_asks_for_one(kineto, tmp_path):
    kineto.write("{}", "a/run.json")
    kineto.write("{}", "b/run.json")
    with pytest.raises(NotATrace, match="b"):
        locate(tmp_path)


def test_run_folder_without_a_rank(kineto, tmp_path):
    kineto.write("{}", "run.json")
    with pytest.raises(NotATrace, match="without a recording"):
        locate(tmp_path)


def test_reading_a_directory_of_several_needs_a_choice(kineto, tmp_path):
    for rank in (0, 1):
        kineto.write(kineto.text([kineto.op()]), f"rank{rank}.json")
    with pytest.raises(BadInput, match="2 recordings"):
        read(tmp_path)


def test_remote_files(kineto):
    system = fsspec.filesystem("memory")
    text = kineto.text([kineto.op()], distributedInfo={"rank": 1, "world_size": 2})
    system.pipe("/bucket/run/rank1.pt.trace.json.gz", gzip.compress(text.encode()))
    system.pipe("/bucket/run/rank0.pt.trace.json", text.replace('"rank": 1', '"rank": 0').encode())
    assert [read(recording).source.rank for recording in locate("memory://bucket/run")] == [0, 1]
    assert read("memory://bucket/run/rank0.pt.trace.json").ops.height == 1
    with pytest.raises(MissingInput):
        locate("memory://bucket/none")
