import pytest

from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000
HERE = {"file": "train.py", "line": 40, "function": "main", "precision": "function"}


def span(start: int, dur: int, idle: int, **more: object) -> dict[str, object]:
    return {
        "start_ns": start * MS,
        "dur_ns": dur * MS,
        "idle_ns": idle * MS,
        "thread": 0,
        "source": "annotation",
        **more,
    }


def idle(start: int, dur: int, cause: str) -> dict[str, object]:
    return {"start_ns": start * MS, "dur_ns": dur * MS, "cause": cause, "inferred": False}


def test_idle_time_of_the_loader_is_the_cost_and_its_caller_the_place(recording, check):
    tables = recording(
        loader_spans=[span(0, 30, 25, single_process=True, **HERE), span(50, 30, 25, single_process=True, **HERE)],
        idle_spans=[idle(5, 25, "loader"), idle(55, 25, "loader"), idle(90, 5, "launch")],
    )
    (finding,) = check("INP001", tables)
    assert finding.cost_ns == 50 * MS
    assert finding.cost_ns_per_step == 50 * MS // 4
    assert (finding.location.file, finding.location.function) == ("train.py", "main")
    assert "50 %" in finding.title
    assert "training thread itself" in finding.title
    assert [evidence.dur_ns for evidence in finding.evidence] == [30 * MS, 30 * MS]


def test_idle_time_that_has_another_cause_is_not_charged(recording, check):
    tables = recording(
        loader_spans=[span(0, 30, 25)], idle_spans=[idle(5, 10, "loader"), idle(15, 15, "gc"), idle(90, 5, "launch")]
    )
    (finding,) = check("INP001", tables)
    assert finding.cost_ns == 10 * MS


def test_hidden_loader_is_dismissed(recording, check):
    (verdict,) = check("INP001", recording(loader_spans=[span(0, 30, 0)], idle_spans=[idle(90, 5, "launch")]))
    assert isinstance(verdict, Dismissal)
    assert "hidden" in verdict.reason


def test_no_loader_no_word(recording, check):
    assert check("INP001", recording(idle_spans=[idle(90, 5, "launch")])) == []


def test_a_wait_outside_the_window_does_not_count(recording, check):
    assert check("INP001", recording(loader_spans=[span(150, 30, 30)], idle_spans=[idle(90, 5, "launch")])) == []


def test_two_loaders_are_two_findings_with_their_parts(recording, check):
    other = {**HERE, "function": "validate", "line": 80}
    tables = recording(
        loader_spans=[span(0, 30, 30, **HERE), span(50, 10, 10, **other)], idle_spans=[idle(0, 40, "loader")]
    )
    found = check("INP001", tables)
    assert [(finding.location.function, finding.cost_ns) for finding in found] == [
        ("main", 30 * MS),
        ("validate", 10 * MS),
    ]


@pytest.mark.parametrize(("small_us", "own"), [(1_010, True), (990, False)])
def test_a_place_below_one_per_cent_gets_no_finding_of_its_own(recording, check, small_us, own):
    small = [
        {**span(50 + place, 2, 0), "idle_ns": small_us * 1000, **HERE, "function": f"small{place}"} for place in (1, 2)
    ]
    total = 40 * MS + 2 * small_us * 1000
    tables = recording(
        loader_spans=[span(0, 40, 40, **HERE), *small],
        idle_spans=[{"start_ns": 0, "dur_ns": total, "cause": "loader", "inferred": False}],
    )
    found = check("INP001", tables)
    assert len(found) == (3 if own else 2)
    assert sum(finding.cost_ns for finding in found) == total
    assert ("2 small places" in found[-1].title) is not own


def test_without_a_device_the_whole_wait_of_the_main_thread_counts(recording, check):
    tables = recording(kind="cpu", loader_spans=[span(0, 30, 30, single_process=True, **HERE)])
    (finding,) = check("INP001", tables)
    assert finding.cost_ns == 30 * MS
    assert finding.title.startswith("The main thread waits 30 %")


def test_it_cannot_tell_when_idle_time_is_unknown(recording, check):
    tables = recording(loader_spans=[span(0, 30, 0)])

    def refuse(_):
        raise NotEnoughData("device work is missing")

    tables._builders["idle_spans"] = refuse
    with pytest.raises(NotEnoughData, match="device work is missing"):
        check("INP001", tables)
