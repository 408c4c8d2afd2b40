"""Commands that the documentation shows are ones that exist, with options that they have; and the site builds."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

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


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "site" / "rules" / "INP001.html").exists()
    assert (tmp_path / "site" / "treatments" / "trim_padding.html").exists()
