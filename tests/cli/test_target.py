from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from slipstream.cli.commands.run import TargetCommand, job_of
from slipstream.model import BadInput

JOB = ["--steps", "3", "-o", "x", "--help", "--", "-m", "y", "-q"]
"""Arguments of a script that look like slipstream's own."""


def parsed(*arguments: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    app = typer.Typer()

    @app.command(cls=TargetCommand)
    def run(target: list[str], steps: int = 8, quiet: bool = False) -> None:
        seen.update(target=target, steps=steps, quiet=quiet)

    result = CliRunner().invoke(app, list(arguments))
    return seen or {"exit": result.exit_code}


@pytest.mark.parametrize("target", [["train.py"], ["-m", "pkg.train"], ["./-odd.py"]])
def test_everything_from_the_target_on_is_the_jobs(target: list[str]) -> None:
    assert parsed(*target, *JOB) == {"target": [*target, *JOB], "steps": 8, "quiet": False}
    assert parsed("--steps", "5", *target, *JOB) == {"target": [*target, *JOB], "steps": 5, "quiet": False}
    assert parsed("--quiet", "--steps=5", *target, *JOB) == {"target": [*target, *JOB], "steps": 5, "quiet": True}


def test_a_double_dash_ends_options_too() -> None:
    assert parsed("--steps", "5", "--", "train.py", *JOB)["target"] == ["train.py", *JOB]


def test_a_value_is_not_taken_for_the_target() -> None:
    assert parsed("--steps", "train.py", "x") == {"exit": 2}


def test_a_misspelt_option_before_the_target_is_an_error_and_not_the_scripts() -> None:
    assert parsed("--step-count", "5", "train.py") == {"exit": 2}


def test_scripts_and_modules_become_jobs() -> None:
    script = job_of(["train.py", "--x", "-m"])
    assert (script.target, script.is_module, script.argv) == ("train.py", False, ("--x", "-m"))
    for target in (["-m", "pkg.train", "--x"], ["-mpkg.train", "--x"]):
        module = job_of(target)
        assert (module.target, module.is_module, module.argv) == ("pkg.train", True, ("--x",))


@pytest.mark.parametrize("target", [["-m"], ["-m", ""]])
def test_a_module_without_a_name(target: list[str]) -> None:
    with pytest.raises(BadInput, match="name of a module"):
        job_of(target)
