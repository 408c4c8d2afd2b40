"""Programs executed, written, read and diagnosed."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slipstream
from slipstream.model import Diagnosis
from slipstream.store import Report, Trace
from synthetic.machine import Machine, execute
from synthetic.program import Program
from synthetic.truth import Truth
from synthetic.writer import Style, document


class Case:
    """A program's truth beside slipstream's answer."""

    def __init__(self, truth: Truth, report: Report) -> None:
        self.truth = truth
        self.report = report

    @property
    def diagnosis(self) -> Diagnosis:
        return self.report.diagnosis

    @property
    def causes(self) -> dict[str, int]:
        """Idle time by cause, as diagnosed."""
        sums: dict[str, int] = {}
        for one in self.diagnosis.window.idle_causes:
            sums[one.cause] = sums.get(one.cause, 0) + one.ns
        return sums

    @property
    def codes(self) -> list[str]:
        """Codes of the findings, the costliest first."""
        return [finding.code for finding in self.diagnosis.findings]


class Bench:
    """Executes and diagnoses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, found: dict[str, Any]) -> Trace:
        path = self.folder / "trace.json"
        path.write_text(json.dumps(found))
        trace = slipstream.load(path)
        assert isinstance(trace, Trace)
        return trace

    def diagnose(self, found: dict[str, Any]) -> Report:
        """The report on a file's content."""
        return slipstream.diagnose(self.read(found))

    def case(self, program: Program, machine: Machine | None = None, style: Style | None = None) -> Case:
        """Execute a program and diagnose what the profiler would have written."""
        execution = execute(program, machine)
        return Case(Truth(execution), self.diagnose(document(execution, style)))


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="session")
def case_of(bench: Bench) -> Callable[[Callable[[], Program]], Case]:
    """The case of a ready-made job, executed once."""
    return functools.cache(lambda job: bench.case(job()))
