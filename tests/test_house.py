"""What the house holds itself to; a convention without a check drifts."""

import ast
import importlib.metadata
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import slipstream
from slipstream.analysis import builders
from slipstream.rules.registry import all_rules
from slipstream.store import DERIVED

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "slipstream").rglob("*.py"))
LIMIT = 400
LONGER: dict[str, str] = {}
"""Modules that may be longer than the limit, each with its reason."""


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def in_a_process(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_every_derived_table_has_a_builder() -> None:
    assert set(builders()) == {table.name for table in DERIVED}


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_every_named_treatment_exists(rule) -> None:
    fix = rule.fix(rule.finding(title="t", cost_ns=1, steps=1))
    if fix is not None and fix.treatment is not None:
        room = "slipstream.tuning.treatments"
        assert importlib.util.find_spec("slipstream.tuning"), f"{rule.code} names a treatment, and there are none"
        assert importlib.util.find_spec(f"{room}.{fix.treatment}"), f"{rule.code}: no treatment {fix.treatment}"


def test_what_the_package_offers() -> None:
    assert set(slipstream.__all__) == {
        "__version__",
        "diagnose",
        "diff",
        "load",
        "profile",
        "render",
        "trace_handler",
    }
    assert all(hasattr(slipstream, name) for name in slipstream.__all__)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert slipstream.__version__ == importlib.metadata.version("slipstream"), "install again: pip install -e ."


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'polars', 'numpy', 'rich', 'typer', 'msgspec'}"
    assert in_a_process(f"import slipstream, sys; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_all_but_the_part_that_runs_inside_a_job_works_where_there_is_no_torch() -> None:
    """Reading, reporting and launching need none; what capture offers to the others is its launcher's side."""
    rooms = ("slipstream.capture.", "slipstream.demo", "slipstream.integrations.", "slipstream.__main__")
    names = [name for name in map(module_of, SOURCES) if not name.startswith(rooms)]
    assert len(names) > 90
    code = f"""
import importlib, sys
sys.modules["torch"] = None
for name in {names}:
    importlib.import_module(name)
import slipstream.capture
print(*(getattr(slipstream.capture, name) is not None for name in slipstream.capture.__all__))
"""
    assert set(in_a_process(code).split()) == {"True"}


def test_modules_are_short() -> None:
    lines = {module_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name for name, count in lines.items() if count > LIMIT} == set(LONGER)


def test_modules_are_named_for_what_they_hold() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert not [name for name in map(module_of, SOURCES) if vague & set(name.split("."))]


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    words = project["dependencies"] + [one for extra in project["optional-dependencies"].values() for one in extra]
    declared = {word.partition(">")[0].replace("-", "_").lower() for word in words}
    known = {*sys.stdlib_module_names, "slipstream", "torch", *declared}
    for path in SOURCES:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
        packages = {name.partition(".")[0] for name in names}
        assert {name for name in packages if name.lower() not in known} <= known, module_of(path)
