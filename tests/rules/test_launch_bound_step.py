import pytest

from slipstream.model import Dismissal

MS = 1_000_000
US = 1_000


def work(count: int) -> list[dict[str, object]]:
    return [
        {
            "event": place,
            "kind": "kernel",
            "name": "k",
            "ts_ns": place * 100 * US,
            "dur_ns": 4 * US,
            "launch_event": 1000,
        }
        for place in range(count)
    ]


def idle(dur: int, cause: str = "launch", event: int | None = None, start: int = 0) -> dict[str, object]:
    return {"start_ns": start, "dur_ns": dur, "cause": cause, "event": event, "inferred": False}


def test_idle_time_for_launches_is_the_ceiling(recording, check):
    tables = recording(device_work=work(400), idle_spans=[idle(20 * MS), idle(10 * MS), idle(15 * MS, "sync")])
    (finding,) = check("LCH001", tables)
    assert finding.cost_ns == 30 * MS
    assert "100 launches a step" in finding.title
    assert "4.00 µs" in finding.title
    assert [evidence.dur_ns for evidence in finding.evidence] == [20 * MS, 10 * MS]


@pytest.mark.parametrize(("busy", "fires"), [(94.9, True), (95.1, False)])
def test_a_device_that_is_busy_95_per_cent_keeps_up(recording, check, busy, fires):
    tables = recording(
        window=[{"busy_ns": round(busy * MS)}], device_work=work(400), idle_spans=[idle(round((100 - busy) * MS))]
    )
    (verdict,) = check("LCH001", tables)
    assert isinstance(verdict, Dismissal) is not fires


def test_quiet_where_the_loader_or_a_sync_explains_the_gaps(recording, check):
    assert (
        check("LCH001", recording(device_work=work(400), idle_spans=[idle(30 * MS, "loader"), idle(9 * MS, "sync")]))
        == []
    )


@pytest.mark.parametrize(("here", "known"), [(51, True), (49, False)])
def test_the_place_is_told_when_most_of_the_waiting_comes_from_it(recording, check, here, known):
    places = [
        {"event": 501, "file": "model.py", "line": 7, "function": "loop", "precision": "function"},
        {"event": 502, "file": "model.py", "line": 90, "function": "rest", "precision": "function"},
        {"event": 503, "file": "model.py", "line": 95, "function": "end", "precision": "function"},
    ]
    ops = [{"event": event, "name": "aten::add", "thread": 0, "ts_ns": 0, "dur_ns": 1} for event in (501, 502, 503)]
    rest = 100 - here
    idles = [idle(here * US, event=501), idle(rest * US // 2, event=502), idle(rest * US // 2, event=503)]
    tables = recording(device_work=work(4), idle_spans=idles, ops=ops, op_places=places)
    (finding,) = check("LCH001", tables)
    assert (finding.location is not None) is known
