"""Real recordings, where a folder of them is at hand: every one is analysed, and its figures are consistent.

Set SLIPSTREAM_CORPUS to a folder of trace files (with sub-folders); none are part of the repository.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from slipstream.cli.application import application
from slipstream.model import CAUSES, json_schema

FOLDER = os.environ.get("SLIPSTREAM_CORPUS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="SLIPSTREAM_CORPUS names no folder of recordings")
FILES = sorted(Path(FOLDER).rglob("*.json*")) if FOLDER else []
DIAGNOSES: dict[Path, dict[str, Any]] = {}
ROUNDING = 1e-6


def analyse(path: Path) -> dict[str, Any]:
    """What ``slipstream analyze --format json`` prints, once per file."""
    if path not in DIAGNOSES:
        result = CliRunner().invoke(application(), ["analyze", str(path), "--format", "json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        DIAGNOSES[path] = json.loads(result.stdout)
    return DIAGNOSES[path]


@pytest.fixture(params=FILES or [None], ids=lambda path: path.name if path else "none")
def diagnosis(request: pytest.FixtureRequest) -> dict[str, Any]:
    return analyse(request.param)


def test_the_folder_holds_recordings() -> None:
    assert FILES, f"no *.json or *.json.gz below {FOLDER}"


def test_it_follows_the_schema(diagnosis: dict[str, Any]) -> None:
    jsonschema.validate(diagnosis, json_schema(), cls=jsonschema.Draft202012Validator)


def test_parts_and_causes_add_up(diagnosis: dict[str, Any]) -> None:
    window = diagnosis["window"]
    length = window["end_ns"] - window["start_ns"]
    if window["busy_ns"] is None:
        assert diagnosis["breakdown"] == []
        assert window["idle_causes"] == []
        return
    assert window["busy_ns"] + window["idle_ns"] == length
    assert 0 <= window["busy_ns"] <= length
    assert sum(cause["ns"] for cause in window["idle_causes"]) == window["idle_ns"]
    assert {cause["cause"] for cause in window["idle_causes"]} <= set(CAUSES)
    assert sum(part["share"] for part in diagnosis["breakdown"]) == pytest.approx(1, abs=ROUNDING)
    steps = len(diagnosis["steps"])
    if steps:
        assert sum(part["ns_per_step"] for part in diagnosis["breakdown"]) == pytest.approx(length / steps, abs=1)


def test_totals_are_consistent(diagnosis: dict[str, Any]) -> None:
    totals = diagnosis["totals"]
    assert totals["kernels"] <= totals["gpu_events"] <= totals["events"]
    if not totals["gpu_events"]:
        assert {name for name, value in totals.items() if name.endswith("_ns") and value is not None} == set()
        return
    assert totals["gpu_busy_ns"] <= totals["gpu_sum_ns"]
    assert totals["kernel_sum_ns"] <= totals["gpu_sum_ns"]
    assert 0 <= totals["exposed_comm_ns"] <= totals["comm_ns"] <= totals["gpu_busy_ns"]
    assert 0 <= totals["exposed_memcpy_ns"] <= totals["memcpy_ns"] <= totals["gpu_busy_ns"]


def test_steps_follow_each_other(diagnosis: dict[str, Any]) -> None:
    steps = diagnosis["steps"]
    assert [step["start_ns"] for step in steps] == sorted(step["start_ns"] for step in steps)
    numbers = [step["number"] for step in steps]
    assert len(set(numbers)) == len(numbers)
    for step in steps:
        assert step["dur_ns"] > 0
        assert diagnosis["window"]["start_ns"] <= step["start_ns"] < diagnosis["window"]["end_ns"]


def test_findings_cost_no_more_than_the_window(diagnosis: dict[str, Any]) -> None:
    window = diagnosis["window"]
    length = window["end_ns"] - window["start_ns"]
    assert all(0 < finding["cost_ns"] <= length for finding in diagnosis["findings"])
    gains = [finding["gain"] for finding in diagnosis["findings"]]
    worth = [
        finding["cost_ns"] / length if gain is None else gain["expected"]
        for finding, gain in zip(diagnosis["findings"], gains, strict=True)
    ]
    assert worth == sorted(worth, reverse=True)
    for finding, gain in zip(diagnosis["findings"], gains, strict=True):
        assert (gain is None) == bool(finding["gain_reason"])
        assert gain is None or gain["low"] <= gain["expected"] <= gain["high"] <= 1
        assert finding["fix"]["summary"]
    ids = [finding["id"] for finding in diagnosis["findings"]]
    assert len(set(ids)) == len(ids)


def test_every_rule_spoke_or_said_why_it_could_not(diagnosis: dict[str, Any]) -> None:
    for note in diagnosis["dismissed"] + diagnosis["not_checked"]:
        assert note["reason"].strip()


def test_hot_shares_are_shares(diagnosis: dict[str, Any]) -> None:
    for name in ("top_ops", "top_kernels"):
        shares = [row["share"] for row in diagnosis[name]]
        assert all(0 <= share <= 1 for share in shares)
        assert sum(shares) <= 1 + ROUNDING
        assert [row["self_ns"] for row in diagnosis[name]] == sorted(
            (row["self_ns"] for row in diagnosis[name]), reverse=True
        )


def test_a_directory_of_ranks_is_one_document() -> None:
    folder = Path(str(FOLDER)) / "two_ranks"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder.name} of ranks")
    found = analyse(folder)
    jsonschema.validate(found, json_schema(), cls=jsonschema.Draft202012Validator)
    assert found["kind"] == "ranks"
    assert [one["source"]["rank"] for one in found["ranks"]] == [0, 1]
