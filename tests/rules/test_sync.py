"""SYN001 and SYN002 share their reading of the gaps."""

import pytest

from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000
HERE = {"file": "train.py", "line": 50, "function": "log", "precision": "function"}


def call(event: int, kind: str, explicit: bool = False, **more: object) -> dict[str, object]:
    return {
        "event": event,
        "name": "cudaStreamSynchronize",
        "kind": kind,
        "explicit": explicit,
        "thread": 0,
        "ts_ns": event * MS,
        "dur_ns": 2 * MS,
        "op_event": None if explicit else 70,
        "gap_ns": MS,
        **HERE,
        **more,
    }


def idle(event: int | None, dur: int, cause: str = "sync") -> dict[str, object]:
    return {"start_ns": 0, "dur_ns": dur * MS, "cause": cause, "event": event, "inferred": False}


OPS = [{"event": 70, "name": "aten::_local_scalar_dense", "thread": 0, "ts_ns": 0, "dur_ns": 1}]


def test_idle_time_behind_read_backs_is_the_cost(recording, check):
    tables = recording(
        ops=OPS,
        blocking_calls=[call(10, "read_back"), call(20, "read_back"), call(30, "synchronize", explicit=True)],
        idle_spans=[idle(10, 4), idle(10, 1), idle(20, 3), idle(30, 9), idle(None, 5, "launch")],
    )
    (finding,) = check("SYN001", tables)
    assert finding.cost_ns == 8 * MS
    assert finding.location.function == "log"
    assert "aten::_local_scalar_dense" in finding.title
    assert finding.evidence[0].ts_ns == 10 * MS


def test_idle_time_behind_explicit_calls_is_the_cost_of_the_other_rule(recording, check):
    tables = recording(
        ops=OPS,
        blocking_calls=[
            call(10, "read_back"),
            call(30, "synchronize", explicit=True),
            call(40, "event", explicit=True),
        ],
        idle_spans=[idle(10, 4), idle(30, 9), idle(40, 2)],
    )
    (finding,) = check("SYN002", tables)
    assert finding.cost_ns == 11 * MS
    assert finding.title.startswith("cudaStreamSynchronize leaves the GPU idle for 11 %")


def test_a_wait_inside_an_op_is_a_read_back_and_uploads_are_neither(recording, check):
    tables = recording(
        ops=OPS,
        blocking_calls=[call(10, "synchronize"), call(20, "pageable_upload")],
        idle_spans=[idle(10, 4), idle(20, 30)],
    )
    (finding,) = check("SYN001", tables)
    assert finding.cost_ns == 4 * MS
    assert check("SYN002", tables) == []


@pytest.mark.parametrize(
    ("code", "explicit", "kind"), [("SYN001", False, "read_back"), ("SYN002", True, "synchronize")]
)
def test_no_gap_no_finding(recording, check, code, explicit, kind):
    calls = [call(event, kind, explicit=explicit) for event in (10, 20, 30, 40)]
    tables = recording(ops=OPS, blocking_calls=calls, idle_spans=[idle(None, 40, "loader")])
    (verdict,) = check(code, tables)
    assert isinstance(verdict, Dismissal)
    assert "a step held the host for 8.00 ms in all" in verdict.reason
    assert "log (train.py:50)" in verdict.reason
    assert "none of them with a gap behind it" in verdict.reason


LAST = [{"event": 80, "kind": "kernel", "name": "k", "ts_ns": 90 * MS, "dur_ns": MS, "launch_ts_ns": 25 * MS}]


def test_a_call_that_no_launch_follows_delays_nothing(recording, check):
    calls = [call(20, "synchronize", explicit=True), call(30, "synchronize", explicit=True)]
    tables = recording(blocking_calls=calls, idle_spans=[idle(20, 4), idle(30, 40)], device_work=LAST)
    (finding,) = check("SYN002", tables)
    assert finding.cost_ns == 4 * MS


@pytest.mark.parametrize(("inferred", "told"), [(51, True), (49, False)])
def test_idle_time_with_work_in_the_queue_is_told_as_inferred(recording, check, inferred, told):
    spans = [{**idle(10, inferred), "inferred": True}, idle(10, 100 - inferred)]
    (finding,) = check("SYN001", recording(ops=OPS, blocking_calls=[call(10, "read_back")], idle_spans=spans))
    assert ("inferred" in finding.title) is told


@pytest.mark.parametrize(("lost_us", "fires"), [(1_010, True), (990, False)])
@pytest.mark.parametrize(
    ("code", "explicit", "kind"), [("SYN001", False, "read_back"), ("SYN002", True, "synchronize")]
)
def test_gaps_below_one_per_cent_are_told_as_harmless(recording, check, code, explicit, kind, lost_us, fires):
    lost = {**idle(10, 0), "dur_ns": lost_us * 1000}
    (verdict,) = check(code, recording(ops=OPS, blocking_calls=[call(10, kind, explicit=explicit)], idle_spans=[lost]))
    assert isinstance(verdict, Dismissal) is not fires
    if not fires:
        assert "cost the GPU 990 µs" in verdict.reason


@pytest.mark.parametrize("code", ["SYN001", "SYN002"])
def test_nothing_to_say_without_such_calls(recording, check, code):
    assert check(code, recording(blocking_calls=[call(20, "pageable_upload")])) == []


@pytest.mark.parametrize("code", ["SYN001", "SYN002", "LCH001", "INP003"])
def test_without_a_device_all_give_the_same_reason(recording, check, code):
    with pytest.raises(NotEnoughData, match=r"^there is no device in this recording$"):
        check(code, recording(kind="cpu"))


@pytest.mark.parametrize("code", ["SYN001", "SYN002", "LCH001", "INP003"])
def test_device_work_that_is_missing_is_not_idleness(recording, check, code):
    with pytest.raises(NotEnoughData, match="missing"):
        check(code, recording(window=[{"busy_ns": None}]))
