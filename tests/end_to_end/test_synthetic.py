"""What is true of executed programs against what slipstream says about their recordings."""

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipstream.model import Diagnosis
from synthetic import jobs
from synthetic.machine import Machine, execute
from synthetic.program import COMMUNICATION_STREAM, COPY_STREAM, Program, Thread, us
from synthetic.truth import Truth
from synthetic.writer import Style, document

JOBS = (
    jobs.healthy,
    jobs.loader_bound,
    jobs.hidden_loader,
    jobs.sync_bound,
    jobs.explicit_sync_bound,
    jobs.harmless_item,
    jobs.launch_bound,
    jobs.graph_replay,
    jobs.allocator_bound,
    jobs.pageable,
    jobs.exposed_collective,
    jobs.backward_thread,
)
every_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
LEAD = ("launch", "host", "sync")
"""Causes that only differ in why the host had no lead."""


def assert_times_are_right(case: Any) -> None:
    """Steps, window, totals and the parts of busy time, to the nanosecond."""
    truth, diagnosis = case.truth, case.diagnosis
    assert [(step.number, step.start_ns, step.start_ns + step.dur_ns) for step in diagnosis.steps] == truth.steps
    window = diagnosis.window
    assert (window.start_ns, window.end_ns) == (truth.start_ns, truth.end_ns)
    assert (window.busy_ns, window.idle_ns) == (truth.busy_ns, truth.idle_ns)
    totals = msgspec.structs.asdict(truth.totals())
    assert {name: getattr(diagnosis.totals, name) for name in totals} == totals
    parts = dict(case.report.tables["breakdown"].select("part", "ns").iter_rows())
    assert {part: parts[part] for part in truth.parts()} == truth.parts()
    assert sum(parts.values()) == truth.end_ns - truth.start_ns
    assert sum(case.causes.values()) == truth.idle_ns


def assert_launches_are_right(case: Any) -> None:
    """Every device task has the call that submitted it and the op around that."""
    execution = case.truth.execution
    ops = dict(case.report.tables["ops"].select("event", "name").iter_rows())
    rows = case.report.tables["device_work"].select("ts_ns", "name", "launch_ts_ns", "op_event").iter_rows()
    found = sorted((start, name, launched, ops.get(op, "")) for start, name, launched, op in rows)
    true = []
    for task in execution.tasks:
        call = execution.calls[task.call]
        op = "" if call.op is None else execution.spans[call.op].name
        true.append((task.start_ns, task.name, call.start_ns, op))
    assert found == sorted(true)


def lead(causes: dict[str, int]) -> int:
    return sum(causes.get(cause, 0) for cause in LEAD)


@every_job
def test_times_are_exact(job: Callable[[], Program], case_of: Any) -> None:
    assert_times_are_right(case_of(job))


@every_job
def test_every_launch_is_found(job: Callable[[], Program], case_of: Any) -> None:
    case = case_of(job)
    assert_launches_are_right(case)
    assert case.diagnosis.integrity.grade == "A"
    assert case.diagnosis.integrity.linked_kernel_share == 1.0


@every_job
def test_device_work_belongs_to_the_step_that_launched_it_and_the_one_it_ran_in(
    job: Callable[[], Program], case_of: Any
) -> None:
    case = case_of(job)

    def step_at(time: int) -> int | None:
        return next((number for number, start, end in case.truth.steps if start <= time < end), None)

    rows = case.report.tables["device_work"].select("ts_ns", "name", "step_launched", "step_ran").rows()
    tasks = case.truth.execution.tasks
    true = [(t.start_ns, t.name, step_at(case.truth.launch(t).start_ns), step_at(t.start_ns)) for t in tasks]
    assert sorted(rows, key=lambda row: row[:2]) == sorted(true, key=lambda row: row[:2])


@every_job
def test_kernels_by_name(job: Callable[[], Program], case_of: Any) -> None:
    case = case_of(job)
    true: dict[str, tuple[int, int]] = {}
    for task in case.truth.execution.tasks:
        if case.truth.start_ns <= task.start_ns < case.truth.end_ns:
            count, ns = true.get(task.name, (0, 0))
            true[task.name] = (count + 1, ns + task.end_ns - task.start_ns)
    assert {hot.name: (hot.count, hot.self_ns) for hot in case.diagnosis.top_kernels} == true


@every_job
def test_idle_causes_are_right(job: Callable[[], Program], case_of: Any) -> None:
    """Exactly, apart from how launch, host and sync share what the host's missing lead costs."""
    case = case_of(job)
    true = case.truth.idle_by_cause()
    assert {cause: ns for cause, ns in case.causes.items() if cause not in LEAD} == {
        cause: ns for cause, ns in true.items() if cause not in LEAD
    }
    assert lead(case.causes) == lead(true)


@pytest.mark.parametrize("job", [jobs.healthy, jobs.hidden_loader, jobs.harmless_item, jobs.graph_replay])
def test_a_healthy_job_has_no_finding(job: Callable[[], Program], case_of: Any) -> None:
    assert case_of(job).codes == []


def test_a_device_that_pauses_between_kernels_is_still_healthy(bench: Any) -> None:
    case = bench.case(jobs.healthy(), Machine(between_ns=us(6)))
    window = case.diagnosis.window
    assert 0.965 < window.busy_ns / (window.end_ns - window.start_ns) < 0.975
    assert case.codes == []


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (jobs.loader_bound, "INP001"),
        (jobs.sync_bound, "SYN001"),
        (jobs.explicit_sync_bound, "SYN002"),
        (jobs.launch_bound, "LCH001"),
        (jobs.backward_thread, "LCH001"),
        (jobs.pageable, "INP003"),
        (jobs.exposed_collective, "COM001"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_first_finding_names_what_was_planted(job: Callable[[], Program], code: str, case_of: Any) -> None:
    assert case_of(job).codes[0] == code


def test_a_loader_costs_what_was_planted(case_of: Any) -> None:
    case = case_of(jobs.loader_bound)
    finding = case.diagnosis.findings[0]
    assert finding.cost_ns == case.truth.idle_by_cause()["loader"]
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("train.py", 5)


def test_waiting_for_workers_is_the_loader_too(bench: Any) -> None:
    slow = bench.case(jobs.workers(2, decode_ns=us(9000)))
    assert_times_are_right(slow)
    assert slow.codes == ["INP001"]
    assert slow.causes["loader"] == slow.truth.idle_by_cause()["loader"]
    enough = bench.case(jobs.workers(4, decode_ns=us(9000), steps=12))
    assert enough.causes["loader"] == enough.truth.idle_by_cause()["loader"]


def test_a_hidden_loader_is_told_to_be_hidden(case_of: Any) -> None:
    dismissed = {one.code: one.reason for one in case_of(jobs.hidden_loader).diagnosis.dismissed}
    assert "hidden" in dismissed["INP001"]


def test_an_item_without_a_gap_is_told_not_to_matter(case_of: Any) -> None:
    case = case_of(jobs.harmless_item)
    assert all(ns == 0 for call, ns in case.truth.gaps_behind_waits() if call.stream == 9)
    dismissed = {one.code: one.reason for one in case.diagnosis.dismissed}
    assert "none of them with a gap" in dismissed["SYN001"]
    assert case.causes.get("sync", 0) == 0


@pytest.mark.parametrize("job", [jobs.sync_bound, jobs.explicit_sync_bound], ids=lambda job: job.__name__)
def test_a_wait_costs_what_the_job_gains_without_it(job: Callable[[], Program], case_of: Any) -> None:
    case = case_of(job)
    gain_ns = case.truth.idle_ns - Truth(execute(job().without_waits())).idle_ns
    assert case.causes["sync"] == pytest.approx(gain_ns, rel=0.01)
    # The rule leaves out the last wait: no launch follows it, so it is not known what it delays.
    assert 0.99 * gain_ns * (jobs.STEPS - 1) / jobs.STEPS <= case.diagnosis.findings[0].cost_ns <= gain_ns * 1.01


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_gaps_behind_waits(job: Callable[[], Program], case_of: Any) -> None:
    case = case_of(job)
    waits = [(call.start_ns, ns) for call, ns in case.truth.gaps_behind_waits() if call.start_ns < case.truth.end_ns]
    rows = case.report.tables["blocking_calls"].sort("ts_ns").select("ts_ns", "gap_ns")
    assert rows.rows() == waits


def test_exposed_communication_costs_what_it_exposes(case_of: Any) -> None:
    case = case_of(jobs.exposed_collective)
    assert case.diagnosis.findings[0].cost_ns == case.truth.totals().exposed_comm_ns


def test_a_late_peer_makes_the_collective_longer(bench: Any) -> None:
    case = bench.case(jobs.exposed_collective(peer_late_ns=us(1500)), style=Style(rank=0, world_size=2))
    assert_times_are_right(case)
    assert case.codes[0] == "COM001"
    assert case.diagnosis.source.rank == 0
    assert case.diagnosis.findings[0].cost_ns == case.truth.totals().exposed_comm_ns > us(6 * 3300)


def test_a_pageable_upload_costs_its_copy_and_its_wait(case_of: Any) -> None:
    case = case_of(jobs.pageable)
    copies = case.truth.parts()["exposed_copies"]
    gain_ns = case.truth.idle_ns - Truth(execute(jobs.pageable().without_waits())).idle_ns
    assert copies <= case.diagnosis.findings[0].cost_ns <= copies + gain_ns


def test_allocator_calls_are_the_cause_and_not_the_launches_around_them(case_of: Any) -> None:
    case = case_of(jobs.allocator_bound)
    assert case.causes["allocator"] == case.truth.idle_by_cause()["allocator"]
    assert case.causes["allocator"] > 50 * case.causes["launch"]


def test_a_wait_in_a_launch_bound_job_is_only_blamed_for_the_lead_it_took(bench: Any) -> None:
    """The device would have been idle without the read-back as well: the host had hardly any lead to lose."""

    def job() -> Program:
        program = Program()
        main = program.thread("main")
        for number in range(jobs.STEPS):
            with main.step(number):
                for _ in range(100):
                    main.compute("aten::add", us(3))
                main.item()
        return program

    case = bench.case(job())
    gain_ns = case.truth.idle_ns - Truth(execute(job().without_waits())).idle_ns
    assert case.codes[0] == "LCH001"
    # The copy's own call and latency, of two waits a step, may be put down to either.
    assert case.causes.get("sync", 0) <= gain_ns + 2 * us(6) * jobs.STEPS
    assert case.causes["launch"] > 10 * case.causes.get("sync", 1)


def test_a_gap_is_put_down_to_the_thread_that_was_waited_for(bench: Any) -> None:
    """Backward allocates after its last launch; the launch that ends the gap comes from the main thread."""
    program = Program()
    main, autograd = program.thread("main"), program.thread("autograd")
    with main.step(0):
        main.compute("aten::mm", us(100))
        main.signal("backward")
        main.wait_for("done")
        main.compute("aten::add_", us(100))
    autograd.wait_for("backward")
    autograd.allocate(us(900))
    autograd.signal("done")
    case = bench.case(program)
    assert case.causes.get("allocator") == case.truth.idle_by_cause()["allocator"]


# Properties of every recording.


def content(diagnosis: Diagnosis, *, origin: bool = True) -> dict[str, Any]:
    found = msgspec.to_builtins(diagnosis)
    del found["source"]["path"]
    if not origin:
        del found["source"]["origin_ns"]
    return found


@every_job
def test_the_order_of_events_does_not_matter(job: Callable[[], Program], bench: Any) -> None:
    found = document(execute(job()))
    shuffled = copy.copy(found)
    shuffled["traceEvents"] = random.Random(job.__name__).sample(found["traceEvents"], len(found["traceEvents"]))
    assert content(bench.diagnose(shuffled).diagnosis) == content(bench.diagnose(found).diagnosis)


@every_job
def test_absolute_time_does_not_matter(job: Callable[[], Program], bench: Any) -> None:
    execution = execute(job())
    here = bench.diagnose(document(execution)).diagnosis
    later = bench.diagnose(document(execution, Style(offset_ns=123_456_789_012, base_ns=1_800_000_000 * 10**9)))
    assert content(here, origin=False) == content(later.diagnosis, origin=False)
    assert later.diagnosis.source.origin_ns == str(1_800_000_000 * 10**9 + 123_456_789_012)


@every_job
def test_scaling_all_times_scales_all_durations(job: Callable[[], Program], bench: Any) -> None:
    found = document(execute(job()), Style(offset_ns=0))
    longer = copy.deepcopy(found)
    for event in longer["traceEvents"]:
        for key in ("ts", "dur"):
            if key in event:
                event[key] *= 3
    one, three = bench.diagnose(found).diagnosis, bench.diagnose(longer).diagnosis
    assert [step.dur_ns * 3 for step in one.steps] == [step.dur_ns for step in three.steps]
    assert one.window.busy_ns * 3 == three.window.busy_ns
    assert one.window.idle_ns * 3 == three.window.idle_ns
    for name in ("gpu_sum_ns", "gpu_busy_ns", "kernel_sum_ns", "comm_ns", "exposed_comm_ns", "exposed_memcpy_ns"):
        assert getattr(one.totals, name) * 3 == getattr(three.totals, name)
    assert [hot.share for hot in three.top_kernels] == pytest.approx([hot.share for hot in one.top_kernels])


@every_job
def test_both_schemas_say_the_same(job: Callable[[], Program], bench: Any) -> None:
    execution = execute(job())
    newer = bench.diagnose(document(execution)).diagnosis
    older = bench.diagnose(document(execution, Style(older=True))).diagnosis
    for part in ("steps", "totals", "window", "breakdown"):
        left, right = getattr(newer, part), getattr(older, part)
        if part == "totals":
            # The older schema writes no Python, no sync and no projected rows.
            left, right = (msgspec.structs.replace(one, events=0) for one in (left, right))
        if part == "window":
            left, right = ({idle.cause: idle.ns for idle in one.idle_causes} for one in (left, right))
        assert left == right
    assert [one.code for one in newer.findings] == [one.code for one in older.findings]


# Programs at random.

LENGTHS = st.sampled_from([us(1), us(7.5), us(60), us(333.333), us(1500)])
STREAMS = st.sampled_from([7, 7, 7, 9])


def kernels(main: Thread, draw: Callable[[Any], Any]) -> None:
    main.compute("aten::mm", draw(LENGTHS), draw(STREAMS))


def graphs(main: Thread, draw: Callable[[Any], Any]) -> None:
    main.graph([("a", draw(LENGTHS)), ("b", draw(LENGTHS))], draw(STREAMS))


def others(main: Thread, draw: Callable[[Any], Any]) -> None:
    """Anything else that a thread may do."""
    ns = draw(LENGTHS)
    choice = draw(st.integers(0, 9))
    if choice == 0:
        main.work(ns)
    elif choice == 1:
        main.loader(ns)
    elif choice == 2:
        main.allocate(ns)
    elif choice == 3:
        main.upload(ns, stream=COPY_STREAM)
    elif choice == 4:
        main.memset(ns)
    elif choice == 5:
        main.all_reduce(ns, stream=COMMUNICATION_STREAM, peer_ns=draw(st.sampled_from([None, us(900)])))
    elif choice == 6:
        main.record("copied", COPY_STREAM)
        main.stream_wait("copied", 7)
    elif choice == 7:
        main.item(ns)
    elif choice == 8:
        main.pageable_upload(ns)
    else:
        main.synchronize(draw(st.sampled_from([None, 7, 9])))


THINGS = st.lists(st.sampled_from([kernels, kernels, graphs, others, others]), max_size=10)


@st.composite
def programs(draw: Any, waits: bool = True) -> Program:
    """Up to three steps of anything, some with a backward pass on a thread of its own."""
    program = Program()
    main, autograd = program.thread("main"), program.thread("autograd")
    for number in range(draw(st.integers(1, 3))):
        with main.step(number):
            main.compute("aten::mm", us(2))
            for kind in draw(THINGS):
                kind(main, draw)
            if draw(st.booleans()):
                main.signal(f"backward {number}")
                autograd.wait_for(f"backward {number}")
                for kind in draw(THINGS):
                    kind(autograd, draw)
                autograd.signal(f"done {number}")
                main.wait_for(f"done {number}")
        if draw(st.booleans()):
            main.work(draw(LENGTHS))
    return program if waits else program.without_waits()


MACHINES = st.sampled_from([Machine(), Machine(queue_depth=2), Machine(between_ns=0, latency_ns=us(15))])


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs(), machine=MACHINES)
def test_any_program(program: Program, machine: Machine, bench: Any) -> None:
    case = bench.case(program, machine)
    assert_times_are_right(case)
    assert_launches_are_right(case)
    true = case.truth.idle_by_cause()
    assert case.causes.get("allocator", 0) == true.get("allocator", 0)
    # A loader that is asked once more after the last launch only says that there is no more.
    assert case.causes.get("loader", 0) + case.causes.get("end_of_data", 0) == true.get("loader", 0)


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs(waits=False), machine=MACHINES)
def test_without_waits_nothing_is_put_down_to_them(program: Program, machine: Machine, bench: Any) -> None:
    case = bench.case(program, machine)
    assert case.causes.get("sync", 0) == 0
    assert not {"SYN001", "SYN002"} & set(case.codes)
