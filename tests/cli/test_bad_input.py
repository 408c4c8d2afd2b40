"""What is no recording is refused in one sentence: exit code 2, no traceback, nothing on standard output."""

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Slipstream = Callable[..., subprocess.CompletedProcess[str]]
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde"

BAD_FILES = {
    "empty.json": b"",
    "empty.json.gz": b"",
    "picture.png": PNG,
    "picture.json": PNG,
    "picture.json.gz": PNG,
    "text.json": b"hello, this is no trace\n",
    "number.json": b"42",
    "other.json": b'{"name": "package", "version": "1.0.0", "dependencies": []}',
    "no_events.json": b'{"schemaVersion": 1, "traceEvents": []}',
    "cut_at_once.json": b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat',
    "cut.json.gz": gzip.compress(b'{"traceEvents": [' + b'{"ph": "M", "name": "x"},' * 500)[:40],
}


def refused(run: subprocess.CompletedProcess[str]) -> None:
    assert run.returncode == 2, run.stderr
    assert run.stdout == ""
    assert run.stderr.startswith("slipstream: ")
    assert run.stderr.count("\n") == 1
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_without_a_complete_event(slipstream: Slipstream, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BAD_FILES[name])
    run = slipstream("analyze", name)
    refused(run)
    assert name in run.stderr


@pytest.mark.parametrize("name", ["empty.json", "picture.png", "other.json", "cut.json.gz"])
def test_the_same_in_a_process_of_its_own(process: Slipstream, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BAD_FILES[name])
    refused(process("analyze", name))


def test_nothing_there(process: Slipstream) -> None:
    run = process("analyze", "missing.json")
    refused(run)
    assert "missing.json" in run.stderr


def test_a_folder_without_recordings(process: Slipstream, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "notes.txt").write_text("nothing")
    refused(process("analyze", "log"))


def test_query_refuses_alike(slipstream: Slipstream) -> None:
    refused(slipstream("query", "missing.json", "SELECT 1"))


def test_a_gate_on_an_unknown_rule_never_passes(slipstream: Slipstream, recording: Path) -> None:
    run = slipstream("analyze", recording, "--fail-on", "INP001,XYZ999")
    refused(run)
    assert "XYZ999" in run.stderr


def test_an_unknown_rule(slipstream: Slipstream) -> None:
    refused(slipstream("rules", "XYZ999"))


def test_an_output_that_cannot_be_written(slipstream: Slipstream, recording: Path) -> None:
    refused(slipstream("analyze", recording, "-o", "missing/folder/x.txt"))


def test_a_script_that_is_not_there(process: Slipstream) -> None:
    run = process("run", "missing.py")
    refused(run)
    assert "missing.py" in run.stderr


def test_a_module_without_name(slipstream: Slipstream) -> None:
    refused(slipstream("run", "-m"))


def test_a_cut_gzip_with_events_is_analysed_and_graded(slipstream: Slipstream, tmp_path: Path, recording: Path) -> None:
    whole = gzip.compress(recording.read_bytes())
    (tmp_path / "cut.json.gz").write_bytes(whole[: len(whole) * 2 // 3])
    run = slipstream("analyze", "cut.json.gz")
    assert run.returncode == 0, run.stderr
    assert "data grade D" in run.stdout or "data grade E" in run.stdout
