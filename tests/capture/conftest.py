"""Runs small training scripts under the capture, each in a process of its own."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slipstream.capture import JobSpec, launch
from support.jobs import Record, Run


@pytest.fixture(scope="session")
def environment() -> Iterator[None]:
    """One thread per process: the machine that runs tests has few cores."""
    before = dict(os.environ)
    os.environ["OMP_NUM_THREADS"] = "1"
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def record(environment: None, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """``record(text, *arguments, **wishes)`` runs a script under the capture; its streams go to files."""
    pytest.importorskip("torch", reason="recording a job needs PyTorch")

    def run(text: str, *argv: str, name: str = "job.py", **wishes: Any) -> Run:
        folder = tmp_path_factory.mktemp("job")
        script = folder / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(textwrap.dedent(text))
        wishes.setdefault("target", str(script))
        job = JobSpec(argv=argv, output=folder / "run", **wishes)
        streams = [folder / "stdout", folder / "stderr"]
        saved = [os.dup(1), os.dup(2)]
        before = Path.cwd()
        try:
            os.chdir(folder)
            for number, path in enumerate(streams, 1):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
                os.dup2(descriptor, number)
                os.close(descriptor)
            outcome = launch(job)
        finally:
            os.chdir(before)
            for number, descriptor in enumerate(saved, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
        stdout, stderr = (path.read_text() for path in streams)
        return Run(outcome=outcome, stdout=stdout, stderr=stderr, script=script)

    return run


@pytest.fixture(scope="session")
def bare(environment: None) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """``bare(script, *arguments)`` runs a script without slipstream."""

    def run(script: Path, *argv: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(script), *argv], capture_output=True, text=True, check=False, cwd=script.parent
        )

    return run
