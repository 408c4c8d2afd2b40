import pytest

from slipstream.model import Dismissal

MS = 1_000_000
US = 1_000
RANGE = {"event": 1, "name": "Optimizer.step#AdamW.step", "thread": 0, "on_device": False}


def mark(start: int = 10, dur: int = 20) -> dict[str, object]:
    return {**RANGE, "ts_ns": start * MS, "dur_ns": dur * MS}


def ops(count: int, name: str = "aten::add_", dur_us: int = 4) -> list[dict[str, object]]:
    return [
        {"event": 100 + place, "name": name, "thread": 0, "ts_ns": 10 * MS + place * 100 * US, "dur_ns": dur_us * US}
        for place in range(count)
    ]


def launches(count: int, name: str = "vectorized_elementwise_kernel", start: int = 40) -> list[dict[str, object]]:
    return [
        {
            "event": 900 + place,
            "kind": "kernel",
            "name": name,
            "ts_ns": start * MS + place * 100 * US,
            "dur_ns": 10 * US,
            "launch_ts_ns": 10 * MS + place * 100 * US,
        }
        for place in range(count)
    ]


def ten_ops(parameters: int = 40, dur_us: int = 4) -> list[dict[str, object]]:
    """Ten ops for each parameter, 20 us apart."""
    return [
        {
            "event": 100 + place,
            "name": f"aten::op{place % 10}_",
            "thread": 0,
            "ts_ns": 10 * MS + place * 20 * US,
            "dur_ns": dur_us * US,
        }
        for place in range(10 * parameters)
    ]


def test_on_the_cpu_calls_cost_what_lies_outside_ops_and_their_fixed_part(recording, check):
    (finding,) = check("LCH002", recording(kind="cpu", annotations=[mark()], ops=ten_ops()))
    # Of ten calls per parameter a fused optimizer would still make six.
    assert finding.cost_ns == 20 * MS * 4 // 10
    assert "400 calls a step" in finding.title


def test_the_work_of_large_tensors_is_not_charged(recording, check):
    ops = ten_ops()
    for row in ops[200:]:
        row["dur_ns"] = 18 * US
    (finding,) = check("LCH002", recording(kind="cpu", annotations=[mark()], ops=ops))
    # Fixed part: 4 us, as the shortest calls show; the rest of 18 us is work.
    assert finding.cost_ns == (20 * MS - 200 * (18 - 4) * US) * 4 // 10


def test_a_fixed_part_is_never_taken_for_more_than_five_microseconds(recording, check):
    (finding,) = check("LCH002", recording(kind="cpu", annotations=[mark()], ops=ten_ops(dur_us=18)))
    assert finding.cost_ns == (20 * MS - 400 * (18 - 5) * US) * 4 // 10


def test_an_optimizer_of_few_calls_has_nothing_to_fuse(recording, check):
    (verdict,) = check("LCH002", recording(kind="cpu", annotations=[mark()], ops=ops(100)))
    assert isinstance(verdict, Dismissal)


@pytest.mark.parametrize(("count", "fires"), [(30, True), (29, False)])
def test_thirty_times_the_same_op_are_a_loop_over_parameters(recording, check, count, fires):
    (verdict,) = check("LCH002", recording(kind="cpu", annotations=[mark()], ops=ten_ops(count)))
    assert isinstance(verdict, Dismissal) is not fires


def test_on_a_device_the_idle_time_between_its_kernels_counts(recording, check):
    idle = [
        {"start_ns": 41 * MS, "dur_ns": 2 * MS, "cause": "launch", "inferred": False},
        {"start_ns": 44 * MS, "dur_ns": 1 * MS, "cause": "sync", "inferred": False},
        {"start_ns": 48 * MS, "dur_ns": 10 * MS, "cause": "launch", "inferred": False},
    ]
    tables = recording(annotations=[mark()], ops=ops(100), device_work=launches(100), idle_spans=idle)
    (finding,) = check("LCH002", tables)
    # The kernels run from 40 ms to 49.91 ms: 2 ms of the first gap and 1.91 ms of the last.
    assert finding.cost_ns == 2 * MS + 1910 * US
    assert "100 launches a step" in finding.title


@pytest.mark.parametrize(("batched", "fires"), [(49, True), (50, False)])
def test_a_batched_optimizer_is_dismissed(recording, check, batched, fires):
    kernels = launches(100 - batched) + launches(batched, "multi_tensor_apply_kernel<...>", start=60)
    idle = [{"start_ns": 41 * MS, "dur_ns": 2 * MS, "cause": "launch", "inferred": False}]
    (verdict,) = check("LCH002", recording(annotations=[mark()], ops=ops(100), device_work=kernels, idle_spans=idle))
    assert isinstance(verdict, Dismissal) is not fires


def test_fused_on_the_cpu_is_dismissed_and_foreach_is_not(recording, check):
    fused = recording(kind="cpu", annotations=[mark()], ops=[*ten_ops(), *ops(1, "aten::_fused_adamw_")])
    assert isinstance(check("LCH002", fused)[0], Dismissal)
    foreach = recording(kind="cpu", annotations=[mark()], ops=[*ten_ops(), *ops(1, "aten::_foreach_add_")])
    assert not isinstance(check("LCH002", foreach)[0], Dismissal)


def test_phases_of_the_capture_stand_in_for_marks(recording, check):
    phases = [{"step": 0, "phase": "optimizer", "start_ns": 10 * MS, "dur_ns": 20 * MS}]
    (finding,) = check("LCH002", recording(kind="cpu", phases=phases, ops=ten_ops()))
    assert finding.cost_ns == 20 * MS * 4 // 10


def test_inference_has_no_optimizer(recording, check):
    assert check("LCH002", recording(kind="cpu", ops=ops(100))) == []


def test_the_caller_of_step_is_the_place(recording, check):
    rows = ten_ops()
    places = [
        {"event": row["event"], "file": "train.py", "line": 66, "function": "main", "precision": "statement"}
        for row in rows
    ]
    (finding,) = check("LCH002", recording(kind="cpu", annotations=[mark()], ops=rows, op_places=places))
    assert finding.location.line == 66
