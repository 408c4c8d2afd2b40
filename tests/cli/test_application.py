import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer

from slipstream import __version__
from slipstream.cli.application import application

OPTIONS = {
    "slipstream": {"--version"},
    "analyze": {"PATH", "--format", "--output", "-o", "--fail-on", "--what-if", "--redact"},
    "demo": {"[ARGS]...", "--output", "-o", "--no-tune", "--format"},
    "diff": {"A", "B", "--format", "--output", "-o"},
    "doctor": {"--format"},
    "query": {"PATH", "SQL", "--format", "--output", "-o"},
    "report": {"PATH", "--output", "-o", "--against", "--redact"},
    "rules": {"[CODE]", "--format"},
    "run": {
        "TARGET",
        "--steps",
        "--warmup",
        "--output",
        "-o",
        "--with",
        "--format",
        "--no-places",
        "--watch",
        "--max-overhead",
        "--quiet",
        "-q",
    },
    "tune": {
        "TARGET",
        "--only",
        "--allow-semantic",
        "--time",
        "--short",
        "--no-recording",
        "--list",
        "--patch",
        "--tuned",
        "--folder",
        "--format",
        "--output",
        "-o",
    },
    "view": {"PATH", "--steps", "--finding", "--output", "-o", "--browser/--no-browser"},
}
"""What scripts of users rely on: a changed set is a changed interface."""


def declared(callback: Callable[..., Any]) -> set[str]:
    import typing

    names = set()
    for hint in typing.get_type_hints(callback, include_extras=True).values():
        if typing.get_origin(hint) is typing.Annotated:
            info = typing.get_args(hint)[1]
            flags = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
            names |= set(flags) or {info.metavar}
    return names


def callbacks() -> dict[str, Callable[..., Any]]:
    app = application()
    found = {command.name or "": command.callback for command in app.registered_commands}
    return {name: callback for name, callback in {"slipstream": app.info.callback, **found}.items() if callback}


def test_commands_and_their_options_are_frozen() -> None:
    assert {name: declared(callback) for name, callback in callbacks().items()} == OPTIONS


@pytest.mark.parametrize("name", OPTIONS)
def test_every_help_has_an_example(name: str) -> None:
    doc = callbacks()[name].__doc__ or ""
    assert "\b\n" in doc
    assert f"slipstream {name}" in doc or name == "slipstream"


def slipstream(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slipstream", *arguments], capture_output=True, text=True, check=False, **options
    )


def test_version_loads_neither_tables_nor_torch() -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "slipstream", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == f"slipstream {__version__}\n"
    loaded = {line.rsplit("|", 1)[1].strip() for line in run.stderr.splitlines() if "|" in line}
    assert "typer" in loaded
    assert not {"polars", "numpy", "torch", "rich"} & loaded


def test_without_arguments_help_is_shown() -> None:
    assert "Commands:" in slipstream().stdout + slipstream().stderr


@pytest.mark.parametrize("arguments", [("nonsense",), ("analyze",), ("analyze", "x", "--format", "yaml"), ("run",)])
def test_wrong_usage_exits_with_2_and_no_traceback(arguments: tuple[str, ...]) -> None:
    run = slipstream(*arguments)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_own_errors_are_one_line_on_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from slipstream import cli
    from slipstream.model import MissingInput

    def broken() -> typer.Typer:
        app = typer.Typer(pretty_exceptions_enable=False)

        @app.command()
        def fail() -> None:
            raise MissingInput("nothing is there: name another path")

        return app

    monkeypatch.setattr("slipstream.cli.application.application", broken)
    monkeypatch.setattr(sys, "argv", ["slipstream"])
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 2
    assert capsys.readouterr().err == "slipstream: nothing is there: name another path\n"


def test_a_defect_shows_its_traceback_and_is_not_taken_for_findings(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from slipstream import cli

    def defective() -> typer.Typer:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("slipstream.cli.application.application", defective)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 2
    told = capsys.readouterr().err
    assert "ZeroDivisionError: inside" in told
    assert "defect" in told


def test_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    from slipstream import cli

    def interrupted() -> typer.Typer:
        app = typer.Typer(pretty_exceptions_enable=False)

        @app.command()
        def wait() -> None:
            raise KeyboardInterrupt

        return app

    monkeypatch.setattr("slipstream.cli.application.application", interrupted)
    monkeypatch.setattr(sys, "argv", ["slipstream"])
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 130
