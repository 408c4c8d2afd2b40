import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from slipstream.model import json_schema

Slipstream = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def other(recording: Path, tmp_path: Path) -> Path:
    """The same job with its kernels taking 1 ms less."""
    document: dict[str, Any] = json.loads(recording.read_text())
    for event in document["traceEvents"]:
        if event["cat"] == "kernel":
            event["dur"] -= 1_000
    path = tmp_path / "other.json"
    path.write_text(json.dumps(document))
    return path


def test_text_says_what_changed_and_that_three_steps_are_too_few(
    process: Slipstream, recording: Path, other: Path
) -> None:
    run = process("diff", recording, other)
    assert (run.returncode, run.stderr) == (0, "")
    assert "3 against 3 steps cannot show any difference" in " ".join(run.stdout.split())
    assert "-1.00 ms" in run.stdout
    assert "aten::mm" in run.stdout
    assert all(len(line) <= 100 for line in run.stdout.splitlines() if str(recording.parent) not in line)


def test_json_follows_the_schema(slipstream: Slipstream, recording: Path, other: Path) -> None:
    document = json.loads(slipstream("diff", recording, other, "--format", "json").stdout)
    jsonschema.Draft202012Validator(json_schema()).validate(document)
    assert document["kind"] == "diff"
    assert {op["op"]: op["effect"]["difference_ns"] for op in document["ops"]} == {"aten::mm": -1_000_000}


def test_several_ranks_are_refused_with_the_files_to_name(
    slipstream: Slipstream, recording: Path, two_ranks: Path
) -> None:
    run = slipstream("diff", recording, two_ranks)
    assert run.returncode == 2
    assert "holds 2 ranks" in run.stderr
    assert "rank0.json" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("missing", ["first", "second"])
def test_a_missing_file_is_named(slipstream: Slipstream, recording: Path, missing: str) -> None:
    paths = ["nowhere.json", recording] if missing == "first" else [recording, "nowhere.json"]
    run = slipstream("diff", *paths)
    assert run.returncode == 2
    assert "nowhere.json" in run.stderr


def test_the_result_can_go_to_a_file(slipstream: Slipstream, recording: Path, other: Path, tmp_path: Path) -> None:
    target = tmp_path / "diff.md"
    run = slipstream("diff", recording, other, "--format", "markdown", "-o", target)
    assert (run.returncode, run.stdout) == (0, "")
    assert target.read_text().startswith("# slipstream diff: B against A")
