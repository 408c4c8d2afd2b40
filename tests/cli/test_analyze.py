import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import fsspec
import jsonschema
import pytest

from slipstream.model import json_schema

Slipstream = Callable[..., subprocess.CompletedProcess[str]]


def validated(text: str) -> dict[str, object]:
    document: dict[str, object] = json.loads(text)
    jsonschema.Draft202012Validator(json_schema()).validate(document)
    return document


def test_text_names_the_cause(process: Slipstream, recording: Path) -> None:
    run = process("analyze", recording)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "waits for the data loader" in run.stdout
    assert "\x1b[" not in run.stdout


def test_json_follows_the_schema(slipstream: Slipstream, recording: Path) -> None:
    document = validated(slipstream("analyze", recording, "--format", "json").stdout)
    assert document["kind"] == "diagnosis"


def test_ranks_are_one_document(slipstream: Slipstream, two_ranks: Path) -> None:
    document = validated(slipstream("analyze", two_ranks, "--format", "json").stdout)
    assert document["kind"] == "ranks"
    assert "2 ranks" in slipstream("analyze", two_ranks).stdout


@pytest.mark.parametrize(("codes", "status"), [("INP001", 1), ("inp001", 1), ("SYN002,INP001", 1), ("SYN002", 0)])
def test_fail_on_turns_findings_into_1(slipstream: Slipstream, recording: Path, codes: str, status: int) -> None:
    run = slipstream("analyze", recording, "--fail-on", codes)
    assert run.returncode == status, run.stderr
    assert "Where the step goes" in run.stdout


def test_redact_takes_the_folder_out(slipstream: Slipstream, recording: Path) -> None:
    assert str(recording) in slipstream("analyze", recording).stdout
    redacted = slipstream("analyze", recording, "--redact").stdout
    assert str(recording.parent) not in redacted
    assert "<path>/trace.json" in redacted


def test_result_in_a_file(slipstream: Slipstream, recording: Path, tmp_path: Path) -> None:
    run = slipstream("analyze", recording, "--format", "json", "-o", "found.json")
    assert (run.returncode, run.stdout) == (0, "")
    assert validated((tmp_path / "found.json").read_text())["kind"] == "diagnosis"


def test_a_terminal_without_its_characters_gets_question_marks(process: Slipstream, recording: Path) -> None:
    run = process("analyze", recording, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert run.returncode == 0, run.stderr
    assert "?" in run.stdout


def test_an_address_is_read_like_a_file(slipstream: Slipstream, recording: Path) -> None:
    fsspec.filesystem("memory").pipe("/analyzed/trace.json", recording.read_bytes())
    run = slipstream("analyze", "memory://analyzed/trace.json", "--format", "json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["source"]["path"] == "memory://analyzed/trace.json"
    assert slipstream("analyze", "").returncode == 2
