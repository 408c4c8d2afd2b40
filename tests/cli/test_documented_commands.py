"""Commands that the documentation shows are ones that exist, with options that they have; and the site builds."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from slipstream.cli.application import application

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(?:console|sh|bash)\n(.*?)```", re.DOTALL)
PLACEHOLDER = re.compile(r"\[[A-Z]|[A-Z]+\.\.\.")
"""A usage line of a table, not an example."""


def documented() -> list[str]:
    found = set()
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = (line.removeprefix("$ ") for line in block.splitlines())
            found |= {line.partition("  #")[0].rstrip() for line in lines if line.startswith("slipstream ")}
    return sorted(line for line in found if not PLACEHOLDER.search(line))


def test_there_are_examples() -> None:
    assert len(documented()) > 20


@pytest.mark.parametrize("line", documented())
def test_an_example_can_be_parsed(line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)[1:]
    group = typer.main.get_command(application())
    command = group.commands[name]  # type: ignore[attr-defined]
    command.make_context(name, arguments)  # raises for what the command does not have


def executed() -> list[str]:
    """All but what tunes for minutes, serves a page until it is stopped, or names a finding of somebody's recording."""

    def left_out(words: list[str]) -> bool:
        name = words[1]
        serves = name == "view" and "-o" not in words
        return name == "demo" or (name == "tune" and "--list" not in words) or serves or "--finding" in words

    return [line for line in documented() if not left_out(shlex.split(line, comments=True))]


@pytest.mark.parametrize("line", executed())
def test_an_example_runs(line: str, places: Path, slipstream: Callable[..., Any], process: Callable[..., Any]) -> None:
    _, *arguments = shlex.split(line, comments=True)
    if arguments[0] == "run":
        pytest.importorskip("torch")
    done = (process if arguments[0] == "run" else slipstream)(*arguments)
    assert done.returncode == (1 if "--fail-on" in arguments else 0), done.stderr
    if "-o" in arguments:
        assert (places / arguments[arguments.index("-o") + 1]).exists()
    assert done.stdout or done.stderr


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "site" / "rules" / "INP001.html").exists()
    assert (tmp_path / "site" / "treatments" / "trim_padding.html").exists()
