"""The wheel that people install: complete, without tests, and at work from a folder of its own."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import slipstream
from synthetic.jobs import loader_bound
from synthetic.machine import execute
from synthetic.writer import write

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)], check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs the installed package in an empty folder."""
    target = tmp_path_factory.mktemp("installed")
    subprocess.run([*PIP, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True)
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    def run(*arguments: str) -> str:
        command = [sys.executable, "-W", "error", *arguments]
        environment = os.environ | {"PYTHONPATH": str(target)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=elsewhere, env=environment)
        return done.stdout

    assert Path(run("-c", "import slipstream; print(slipstream.__file__)").strip()).is_relative_to(target)
    return run


def test_it_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    files = [path.relative_to(source) for path in (source / "slipstream").rglob("*") if path.is_file()]
    caches = ("__pycache__", ".")  # of Python and of tools that were started in there
    wanted = {path.as_posix() for path in files if not any(part.startswith(caches) for part in path.parts)}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert "slipstream/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_it_holds_what_is_read_at_run_time(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "slipstream/model/hardware_peaks.csv",
        "slipstream/analysis/known_packages.toml",
        "slipstream/capture/hook/sitecustomize.py",
        "slipstream/reports/html/diagnosis.html",
        "slipstream/reports/html/report.js",
        "slipstream/reports/html/style.css",
        "slipstream/demo/train_bert.py",
    } <= names


def test_it_tells_its_version(installed: Callable[..., str]) -> None:
    assert installed("-m", "slipstream", "--version") == f"slipstream {slipstream.__version__}\n"


def test_it_analyses(installed: Callable[..., str], tmp_path: Path) -> None:
    trace = write(execute(loader_bound()), tmp_path / "trace.json")
    found = json.loads(installed("-m", "slipstream", "analyze", str(trace), "--format", "json"))
    assert found["findings"][0]["code"] == "INP001"
