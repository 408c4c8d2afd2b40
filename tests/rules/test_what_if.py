"""Several fixes replayed at once, on recordings of executed programs."""

import json
from pathlib import Path

import msgspec
import pytest

import slipstream
from slipstream.model import BadInput, NotEnoughData
from slipstream.rules.registry import all_rules
from slipstream.rules.what_if import what_if
from slipstream.store import Report, Trace
from synthetic import jobs
from synthetic.machine import execute
from synthetic.writer import document


@pytest.fixture
def report(tmp_path: Path) -> Report:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document(execute(jobs.loader_bound()))))
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    return slipstream.diagnose(trace)


def test_one_fix_together_is_that_fix_alone(report: Report) -> None:
    answer = what_if(report, ["INP001"])
    assert answer.together is not None
    (share,) = answer.fixes
    assert share.alone == answer.together
    assert share.added == answer.together.expected
    (finding,) = (finding for finding in report.diagnosis.findings if finding.code == "INP001")
    assert finding.gain == answer.together


def test_what_a_fix_adds_is_what_the_others_leave(report: Report) -> None:
    codes = list(dict.fromkeys(finding.code for finding in report.diagnosis.findings))
    answer = what_if(report, codes)
    assert answer.together is not None
    for share in answer.fixes:
        if share.alone is None:
            assert share.reason == f"no replay of {share.code}'s fix is known"
        else:
            assert share.added is not None
            assert share.added <= answer.together.expected


def test_what_is_not_there_cannot_be_fixed(report: Report) -> None:
    with pytest.raises(BadInput, match="names XYZ999, which is no rule"):
        what_if(report, ["XYZ999"])
    with pytest.raises(BadInput, match="COM003 found nothing in this recording; found was INP001"):
        what_if(report, ["COM003"])


def test_a_fix_that_cannot_be_replayed_does_not_hide_the_others(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: object, tables: object, finding: object) -> None:
        raise NotEnoughData("record with shapes")

    other = "COM003"
    monkeypatch.setattr(type(all_rules()[other]), "edits", refused)
    finding = msgspec.structs.replace(report.diagnosis.findings[0], code=other)
    diagnosis = msgspec.structs.replace(report.diagnosis, findings=(*report.diagnosis.findings, finding))
    answer = what_if(msgspec.structs.replace(report, diagnosis=diagnosis), ["INP001", other])
    assert [share.reason for share in answer.fixes] == [None, "record with shapes"]
    assert answer.together == answer.fixes[0].alone
