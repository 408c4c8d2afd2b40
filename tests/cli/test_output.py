import io
import os
from pathlib import Path

import pytest
import typer

from slipstream.cli.job_summary import step_facts
from slipstream.cli.output import emit, style_for
from slipstream.cli.progress import progress
from slipstream.cli.running import speaks_for_all
from slipstream.model import BadInput
from slipstream.store import DECLARED, RunFolder


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert style_for(Terminal()).color
    assert not style_for(io.StringIO()).color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_for(Terminal()).color


def test_no_colours_on_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not style_for(Terminal()).color


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("20", 60), ("500", 120)])
def test_width_follows_the_terminal_within_bounds(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert style_for(Terminal()).width == width


def test_width_of_a_pipe() -> None:
    assert style_for(io.StringIO()).width == 100


def test_a_file_gets_the_result_and_standard_output_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emit("µ\n", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == "µ\n"
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "wrote" in shown.err


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot write"):
        emit("x", tmp_path / "missing" / "x.txt")


def test_a_closed_pipe_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        with pytest.raises(typer.Exit) as ending:
            emit("x" * 100_000, None)
    assert ending.value.exit_code == 141


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading") as now:
        now("more")
    assert capsys.readouterr().err == ""


def test_what_job_steps_tell_where_no_window_was_recorded(tmp_path: Path) -> None:
    def folder(name: str, phases: list[str]) -> RunFolder:
        found = RunFolder(tmp_path / name)
        found.rank(0).mkdir(parents=True)
        count = len(phases)
        steps = {
            "number": list(range(count)),
            "dur_ns": [90_000_000, *([10_000_000] * (count - 1))],
            "loader_ns": [0, *([2_500_000] * (count - 1))],
            "phase": phases,
        }
        DECLARED["job_steps"].frame(steps).write_parquet(found.rank(0) / "job_steps.parquet")
        return found

    usual = folder("usual", ["warmup", "plain", "recorded", "plain"])
    assert step_facts(usual) == "4 steps seen, median 10.0 ms; 25 % of the time waiting for the data loader"
    assert "2 steps seen, all of them warm-up, median 10.0 ms" in (step_facts(folder("short", ["warmup"] * 2)) or "")
    assert step_facts(RunFolder(tmp_path / "missing")) is None


@pytest.mark.parametrize(
    ("environ", "speaks"),
    [
        ({}, True),
        ({"RANK": "0"}, True),
        ({"RANK": "3"}, False),
        ({"SLURM_PROCID": "1"}, False),
        ({"RANK": "0", "SLURM_PROCID": "1"}, True),
    ],
)
def test_only_rank_0_speaks(environ: dict[str, str], speaks: bool) -> None:
    assert speaks_for_all(environ) is speaks
