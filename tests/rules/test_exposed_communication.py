import pytest

from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000


def work(event: int, kind: str, start: int, dur: int, **more: object) -> dict[str, object]:
    return {"event": event, "kind": kind, "name": f"{kind}_kernel", "ts_ns": start * MS, "dur_ns": dur * MS, **more}


def test_collective_time_beside_which_nothing_computes_is_the_cost(recording, check):
    tables = recording(
        device_work=[work(1, "kernel", 0, 30), work(2, "collective", 20, 30), work(3, "copy", 35, 5)],
        collectives=[{"event": 2, "operation": "all_reduce", "source": "name"}],
    )
    (finding,) = check("COM001", tables)
    assert finding.cost_ns == 20 * MS
    assert "20 %" in finding.title
    assert "30.0 ms" in finding.title
    assert "all_reduce" in finding.title


def test_overlapping_collectives_count_once(recording, check):
    (finding,) = check("COM001", recording(device_work=[work(1, "collective", 0, 30), work(2, "collective", 10, 30)]))
    assert finding.cost_ns == 40 * MS


def test_only_the_part_inside_the_window_counts(recording, check):
    (finding,) = check("COM001", recording(device_work=[work(1, "collective", 90, 30)]))
    assert finding.cost_ns == 10 * MS


def test_hidden_communication_is_dismissed(recording, check):
    (verdict,) = check("COM001", recording(device_work=[work(1, "kernel", 0, 80), work(2, "collective", 20, 30)]))
    assert isinstance(verdict, Dismissal)
    assert "all of it beside computation" in verdict.reason


def test_one_process_has_nothing_to_say(recording, check):
    assert check("COM001", recording(device_work=[work(1, "kernel", 0, 80)])) == []


def test_the_place_of_the_launching_op_is_told(recording, check):
    tables = recording(
        device_work=[work(1, "collective", 20, 30, op_event=70)],
        op_places=[{"event": 70, "file": "train.py", "line": 9, "function": "reduce", "precision": "function"}],
    )
    assert check("COM001", tables)[0].location.function == "reduce"


def test_it_cannot_tell_when_collectives_were_launched_but_are_missing(recording, check):
    ops = [{"event": 70, "name": "c10d::allreduce_", "thread": 0, "ts_ns": 0, "dur_ns": 1}]
    with pytest.raises(NotEnoughData, match="kernels are missing"):
        check("COM001", recording(world_size=2, ops=ops, device_work=[work(1, "kernel", 0, 80)]))


def test_without_a_device_calls_and_waits_of_the_main_thread_count(recording, check):
    ops = [
        {"event": 70, "name": "c10d::allreduce_", "thread": 0, "ts_ns": 10 * MS, "dur_ns": 5 * MS},
        {"event": 71, "name": "gloo:all_reduce", "thread": 9, "ts_ns": 10 * MS, "dur_ns": 50 * MS},
    ]
    idle = [
        {"start_ns": 20 * MS, "dur_ns": 8 * MS, "cause": "comm_wait", "inferred": False},
        {"start_ns": 40 * MS, "dur_ns": 8 * MS, "cause": "host", "inferred": True},
    ]
    (finding,) = check("COM001", recording(kind="cpu", ops=ops, idle_spans=idle))
    assert finding.cost_ns == 13 * MS
    assert finding.title.startswith("The main thread spends 13 %")
    assert [evidence.event for evidence in finding.evidence] == ["wait for other processes", "c10d::allreduce_"]


def test_without_a_device_exchange_on_other_threads_alone_is_hidden(recording, check):
    ops = [{"event": 71, "name": "gloo:all_reduce", "thread": 9, "ts_ns": 10 * MS, "dur_ns": 50 * MS}]
    (verdict,) = check("COM001", recording(kind="cpu", ops=ops))
    assert isinstance(verdict, Dismissal)


def test_it_cannot_tell_without_host_rows_of_a_distributed_job(recording, check):
    with pytest.raises(NotEnoughData, match="no host ops"):
        check("COM001", recording(kind="cpu", world_size=2))
