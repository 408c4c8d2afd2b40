import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slipstream.cli import sql
from slipstream.cli.sql import answer
from slipstream.model import BadInput
from slipstream.store import DECLARED

Slipstream = Callable[..., subprocess.CompletedProcess[str]]


def test_recorded_and_derived_tables_answer(recording: Path) -> None:
    found = answer(str(recording), "SELECT name, COUNT(*) AS n, SUM(dur_ns) AS ns FROM kernels GROUP BY name")
    assert list(found.rows) == [{"name": "ampere_sgemm_128x64_tn", "n": 3, "ns": 9_000_000}]
    assert answer(str(recording), "SELECT steps FROM window").rows == [{"steps": 3}]


def test_dictionary_columns_are_text(recording: Path) -> None:
    found = answer(str(recording), "SELECT UPPER(name) AS name FROM ops WHERE name LIKE 'aten::%' LIMIT 1")
    assert list(found.rows) == [{"name": "ATEN::MM"}]


def test_tables_join(recording: Path) -> None:
    query = "SELECT r.name FROM kernels k JOIN runtime r ON k.correlation = r.correlation GROUP BY r.name"
    assert list(answer(str(recording), query).rows) == [{"name": "cudaLaunchKernel"}]


def test_only_mentioned_tables_are_built(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = sql.Tables.__getitem__

    def spy(self: sql.Tables, name: str) -> object:
        asked.append(name)
        return original(self, name)

    monkeypatch.setattr(sql.Tables, "__getitem__", spy)
    answer(str(recording), "SELECT COUNT(*) FROM kernels")
    assert set(asked) == {"kernels"}


def test_ranks_have_a_column_of_their_own(two_ranks: Path) -> None:
    found = answer(str(two_ranks), "SELECT rank, COUNT(*) AS n FROM kernels GROUP BY rank ORDER BY rank")
    assert list(found.rows) == [{"rank": 0, "n": 3}, {"rank": 1, "n": 3}]


def test_show_tables_lists_what_is_declared(recording: Path) -> None:
    assert [row["table"] for row in answer(str(recording), "show tables;").rows] == list(DECLARED)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELEC 1", "the query failed"),
        ("SELECT * FROM nothing", "tables: events, threads"),
        ("SELECT nonsense FROM kernels", "columns of kernels: event, name"),
        ("SELECT * FROM job_steps", "record the job with `slipstream run`"),
        ("DROP TABLE kernels", "only SELECT"),
        ("", "the query failed"),
    ],
)
def test_a_wrong_query_says_what_there_is(recording: Path, query: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        answer(str(recording), query)


def test_formats(slipstream: Slipstream, recording: Path) -> None:
    query = "SELECT name, dur_ns FROM kernels LIMIT 1"
    assert slipstream("query", recording, query, "--format", "csv").stdout == (
        "name,dur_ns\nampere_sgemm_128x64_tn,3000000\n"
    )
    document = json.loads(slipstream("query", recording, query, "--format", "json").stdout)
    assert document["kind"] == "table"
    assert document["rows"] == [{"name": "ampere_sgemm_128x64_tn", "dur_ns": 3_000_000}]
    assert "| name | dur_ns |" in slipstream("query", recording, query, "--format", "markdown").stdout
    assert "3000000" in slipstream("query", recording, query).stdout


def test_a_wrong_query_exits_with_2(slipstream: Slipstream, recording: Path) -> None:
    run = slipstream("query", recording, "SELECT nonsense FROM kernels")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("slipstream: the query failed")
