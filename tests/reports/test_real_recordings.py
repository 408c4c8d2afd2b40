"""Reports of real recordings; found through SLIPSTREAM_CORPUS and skipped without it."""

import json
import os
from pathlib import Path

import jsonschema
import pytest

from slipstream.api import diagnose, load
from slipstream.model import json_schema
from slipstream.reports import Style, redact, render
from slipstream.reports.redaction import Identity
from slipstream.store import Trace

CORPUS = os.environ.get("SLIPSTREAM_CORPUS")
AT_MOST_BYTES = 1_000_000
"""Larger recordings show the same and take longer."""

pytestmark = pytest.mark.skipif(CORPUS is None, reason="SLIPSTREAM_CORPUS names no folder of real recordings")


def recordings() -> list[str]:
    found = Path(CORPUS or "missing").glob("*.json.gz")
    return sorted(path.name for path in found if path.stat().st_size <= AT_MOST_BYTES)


@pytest.mark.parametrize("name", recordings())
def test_every_format_shows_it(name: str) -> None:
    trace = load(Path(CORPUS or "") / name)
    assert isinstance(trace, Trace)
    report = diagnose(trace)
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(render(report, "json")))
    assert render(report, "markdown").startswith("# slipstream: ")
    for width in (80, 100):
        for line in render(report, "text", Style(width=width)).splitlines():
            # Commands to be copied, and the path they are about, are never broken.
            assert len(line) <= width or "slipstream " in line
    assert str(CORPUS) not in render(redact(report, Identity()), "json")
