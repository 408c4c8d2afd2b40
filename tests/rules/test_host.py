"""The family host: collector, debugging, bursts, threads."""

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
MS = 1_000_000


def pausing(pause_us, **more):
    """A step of 1 ms: 0.5 ms of ops, then a measured pause."""
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[span("aten::mm", 0, 500 * US)],
        gc_pauses=[{"step": 0, "start_ns": 600 * US, "dur_ns": pause_us * US, "generation": 2}] if pause_us else [],
        **more,
    )


def test_a_pause_outside_ops_is_lost(check):
    (finding,) = check("HST001", pausing(100))
    assert finding.cost_ns == 100 * US
    assert finding.evidence[0].note == "generation 2"


def test_a_pause_beside_work_of_the_device_is_not(check):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        runtime=[span("cudaLaunchKernel", 0, US, correlation=1)],
        kernels=[span("k", US, 999 * US, correlation=1)],
        gc_pauses=[{"step": 0, "start_ns": 600 * US, "dur_ns": 100 * US, "generation": 2}],
    )
    assert check("HST001", tables) == []


def test_rare_long_pauses_count_by_their_share_of_the_job(check):
    steps = [{"number": n, "start_ns": n * MS, "dur_ns": MS, "phase": "plain"} for n in range(10)]
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[span("aten::mm", 0, 500 * US)],
        job_steps=steps,
        gc_pauses=[{"step": 7, "start_ns": 7 * MS, "dur_ns": MS // 2, "generation": 2}],
    )
    (finding,) = check("HST001", tables)
    assert finding.cost_ns == 50 * US  # 5 % of the job, on a window of 1 ms
    assert "5.0 %" in finding.title


@pytest.mark.parametrize(("job_us", "whole_job"), [(126, True), (124, False)])
def test_the_whole_job_speaks_where_it_lost_clearly_more(check, job_us, whole_job):
    steps = [{"number": n, "start_ns": n * MS, "dur_ns": MS, "phase": "plain"} for n in range(2)]
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[span("aten::mm", 0, 500 * US)],
        job_steps=steps,
        gc_pauses=[
            {"step": 0, "start_ns": 600 * US, "dur_ns": 100 * US, "generation": 1},
            {"step": 1, "start_ns": 1_600 * US, "dur_ns": (2 * job_us - 100) * US, "generation": 2},
        ],
    )
    (finding,) = check("HST001", tables)
    assert ("whole job" in finding.title) is whole_job
    assert finding.cost_ns == (job_us if whole_job else 100) * US


def test_collections_by_hand_are_seen_in_python_rows_and_counted_once(check):
    python = [span("train.py(9): main", 0, 1_000 * US), span("<built-in function collect>", 590 * US, 120 * US)]
    for measured in (0, 100):
        (finding,) = check(
            "HST001",
            pausing(measured, python=python)
            if measured
            else make_tables(steps=[step(0, 0, 1_000 * US)], ops=[span("aten::mm", 0, 500 * US)], python=python),
        )
        assert finding.cost_ns == 120 * US
        assert finding.location.function == "main"
        assert "gc.collect()" in finding.title


def test_unmeasured_pauses_are_not_none(check):
    with pytest.raises(NotEnoughData, match="slipstream run"):
        check("HST001", make_tables(steps=[step(0, 0, 1_000 * US)], ops=[span("aten::mm", 0, 500 * US)]))
    assert check("HST001", pausing(0)) == []


NODE = span("autograd::engine::evaluate_function: MulBackward0", 400 * US, 100 * US)


def test_anomaly_detection_at_work(check):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[
            NODE,
            span("aten::isnan", 410 * US, 30 * US),
            span("aten::ne", 411 * US, 20 * US),
            span("aten::_is_any_true", 450 * US, 20 * US),
            span("aten::isnan", 700 * US, 90 * US),  # the user's own check
        ],
        python=[span("torch/fx/traceback.py(497): format_stack", 100 * US, 50 * US)],
    )
    (finding,) = check("HST002", tables)
    assert finding.cost_ns == (30 + 20 + 50) * US


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("anomaly_mode", "on", True),
        ("anomaly_mode", "off", False),
        ("CUDA_LAUNCH_BLOCKING", "1", True),
        ("CUDA_LAUNCH_BLOCKING", "0", False),
        ("tracer", "coverage", True),
        ("tracer", "none", False),
    ],
)
def test_other_switches_are_told_without_a_cost(check, name, value, told):
    tables = make_tables(
        steps=[step(0, 0, US)], ops=[span("aten::mm", 0, US)], switches=[{"name": name, "value": value}]
    )
    found = check("HST002", tables)
    assert [isinstance(verdict, Dismissal) for verdict in found] == ([True] if told else [])


def bursts(lengths_us, **more):
    steps, begin = [], 0
    for number, length in enumerate(lengths_us):
        steps.append(
            {"number": number, "start_ns": begin, "dur_ns": length * US, "phase": "plain", "loader_ns": 0, **more}
        )
        begin += length * US
    return make_tables(steps=[step(0, 0, 1_000 * US)], ops=[span("aten::mm", 0, US)], job_steps=steps)


@pytest.mark.parametrize(("long_us", "fires"), [(126, True), (124, False)])
def test_every_fourth_step_a_quarter_longer(check, long_us, fires):
    found = check("HST003", bursts([100, 100, 100, long_us] * 5))
    assert bool(found) is fires
    if fires:
        assert "Every 4th step" in found[0].title
        assert found[0].cost_ns == round(26 * 5 / (426 * 5) * 1_000 * US)


def test_long_steps_without_a_period_are_left_alone(check):
    lengths = [100] * 30
    for place in (2, 3, 9, 20, 27):
        lengths[place] = 200
    assert check("HST003", bursts(lengths)) == []
    assert check("HST003", bursts([100, 300] * 2 + [100] * 20)) == []  # two bursts only


def test_noise_between_bursts_does_not_hide_them(check):
    lengths = [100, 100, 100, 100, 300] * 6
    lengths[7] = 150
    (finding,) = check("HST003", bursts(lengths))
    assert "Every 5th step" in finding.title


def test_the_loader_is_not_a_burst(check):
    steps = [
        {
            "number": n,
            "start_ns": n,
            "dur_ns": (300 if n % 5 == 4 else 100) * US,
            "phase": "plain",
            "loader_ns": 200 * US if n % 5 == 4 else 0,
        }
        for n in range(20)
    ]
    tables = make_tables(steps=[step(0, 0, 1_000 * US)], ops=[span("aten::mm", 0, US)], job_steps=steps)
    assert check("HST003", tables) == []


@pytest.mark.parametrize(("count", "enough"), [(12, True), (11, False)])
def test_few_steps_tell_no_period(check, count, enough):
    tables = bursts([100] * count)
    if enough:
        assert check("HST003", tables) == []
    else:
        with pytest.raises(NotEnoughData, match="too few"):
            check("HST003", tables)


def threads(count, cores, mm_us=1_000, **switches):
    values = {"torch_threads": count, "allowed_cores": cores, **switches}
    rows = [{"name": name, "value": str(value)} for name, value in values.items()]
    return make_tables(steps=[step(0, 0, 2_000 * US)], ops=[span("aten::mm", 0, mm_us * US)], switches=rows)


@pytest.mark.parametrize(
    ("count", "cores", "switches", "cost_us"),
    [
        (1, 8, {"OMP_NUM_THREADS": 1}, 875),
        (1, 8, {}, 750),  # 4 physical cores at least
        (4, 8, {}, None),  # PyTorch's own choice
        (8, 8, {"OMP_NUM_THREADS": 8}, None),
        (1, 8, {"cpu_quota_cores": "1"}, None),
        (1, 8, {"cpu_quota_cores": "none", "OMP_NUM_THREADS": 1}, 875),
    ],
)
def test_missing_threads_leave_cores_idle(check, count, cores, switches, cost_us):
    found = check("HST004", threads(count, cores, **switches))
    assert [finding.cost_ns for finding in found] == ([] if cost_us is None else [cost_us * US])


@pytest.mark.parametrize(("mm_us", "fires"), [(200, True), (199, False)])
def test_only_long_matrix_work_divides(check, mm_us, fires):
    (verdict,) = check("HST004", threads(1, 8, mm_us))
    assert isinstance(verdict, Dismissal) is not fires


def test_more_threads_than_cores_are_told(check):
    (verdict,) = check("HST004", threads(9, 8))
    assert isinstance(verdict, Dismissal)
    assert "9 threads" in verdict.reason
