"""Metrics of executed programs against what is counted from the execution itself, the simple way."""

import itertools
from collections import Counter, defaultdict
from typing import Any

import polars as pl
import pytest

from slipstream.analysis import tables_of
from slipstream.store import Tables
from synthetic import jobs
from synthetic.machine import Execution, Machine, Task, execute
from synthetic.program import Program, us
from synthetic.truth import Truth
from synthetic.writer import Style, document

JOBS = (
    jobs.healthy,
    jobs.loader_bound,
    jobs.sync_bound,
    jobs.harmless_item,
    jobs.launch_bound,
    jobs.graph_replay,
    jobs.pageable,
    jobs.exposed_collective,
    jobs.backward_thread,
)
every_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
CLASS = {"kernel": "compute", "set": "compute", "collective": "communication", "copy": "copy"}


class Measured:
    """An execution, its truth and slipstream's tables of its recording."""

    def __init__(
        self, bench: Any, program: Program, machine: Machine | None = None, style: Style | None = None
    ) -> None:
        self.execution: Execution = execute(program, machine)
        self.truth = Truth(self.execution)
        self.tables: Tables = tables_of(bench.read(document(self.execution, style)))

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.tables[name].with_columns(pl.col(pl.Categorical).cast(pl.String)).rows(named=True)

    def tasks_by_stream(self) -> dict[int, list[Task]]:
        found = defaultdict(list)
        for task in self.execution.tasks:
            found[task.stream].append(task)
        return found


def classes(tasks: list[Task], start_ns: int, end_ns: int) -> dict[str, int]:
    """Time of each combination of what runs, by a look at every stretch between two borders."""
    borders = {
        start_ns,
        end_ns,
        *(at for task in tasks for at in (task.start_ns, task.end_ns) if start_ns < at < end_ns),
    }
    found: Counter[str] = Counter()
    for begin, end in itertools.pairwise(sorted(borders)):
        running = {CLASS[task.kind] for task in tasks if task.start_ns <= begin and task.end_ns >= end}
        name = "+".join(one for one in ("compute", "communication", "copy") if one in running)
        found[name or "idle"] += end - begin
    return dict(found)


@every_job
def test_classes_of_overlap_of_the_window_and_of_every_step(job: Any, bench: Any) -> None:
    seen = Measured(bench, job(steps=3))
    truth = seen.truth
    for number, start, end in [(None, truth.start_ns, truth.end_ns), *truth.steps]:
        rows = [row for row in seen.rows("overlap") if row["step"] == number]
        assert {row["overlap"]: row["ns"] for row in rows} == classes(seen.execution.tasks, start, end)


@every_job
def test_streams_and_their_queues(job: Any, bench: Any) -> None:
    seen = Measured(bench, job(steps=3))
    start, end = seen.truth.start_ns, seen.truth.end_ns
    idle = {row["stream"]: row for row in seen.rows("stream_idle") if row["scope"] == "stream"}
    queues = {row["stream"]: row for row in seen.rows("queue_stats")}
    assert set(idle) == set(queues) == set(seen.tasks_by_stream())
    for stream, tasks in seen.tasks_by_stream().items():
        assert idle[stream]["idle_ns"] == classes(tasks, start, end).get("idle", 0)
        first: dict[int, int] = {}
        for task in sorted(tasks, key=lambda task: task.start_ns):
            first.setdefault(task.call, task.start_ns)
        entries = [(seen.execution.calls[call].start_ns, until) for call, until in first.items()]
        waited = sum(max(0, min(until, end) - max(since, start)) for since, until in entries)
        assert queues[stream]["mean_depth"] == pytest.approx(waited / (end - start))
        deepest = max(sum(a <= since < b for a, b in entries) for since, _ in entries if start <= since < end)
        assert queues[stream]["max_depth"] == deepest
        assert (queues[stream]["unlinked"], queues[stream]["blocked_ns"]) == (0, 0)
        delays = [until - since for since, until in entries if start <= since < end]
        rows = [row for row in seen.rows("launch_delays") if row["stream"] == stream]
        assert sum(row["count"] for row in rows) == len(delays)
        assert sum(row["mean_ns"] * row["count"] for row in rows) == pytest.approx(sum(delays))
        assert max(row["max_ns"] for row in rows) == max(delays)


def test_the_host_stands_before_a_full_queue(bench: Any) -> None:
    program = Program()
    main = program.thread("main")
    with main.step(0):
        for _ in range(1_400):
            main.compute("aten::mm", us(100))
    main.synchronize()
    machine = Machine()
    seen = Measured(bench, program, machine)
    durations = [call.end_ns - call.start_ns for call in seen.execution.calls[:-1]]
    held = sum(dur for dur in durations if dur > machine.call_ns)
    assert held > us(10_000)
    assert seen.rows("queue_stats")[0]["blocked_ns"] == pytest.approx(held, rel=0.01)


def test_other_vendors_run_everything_on_stream_0(bench: Any) -> None:
    program = Program()
    main = program.thread("main")
    for number in range(3):
        with main.step(number):
            for _ in range(5):
                main.kernel("Cijk_Ailk_Bljk", 300, stream=0)
                main.kernel("elementwise", 700, stream=0)
    seen = Measured(bench, program)
    (row,) = [row for row in seen.rows("stream_idle") if row["scope"] == "stream"]
    assert (row["stream"], row["busy_ns"], row["count"]) == (0, 15 * 1_000, 30)
    pair = next(row for row in seen.rows("kernel_sequences") if row["names"] == "Cijk_Ailk_Bljk\nelementwise")
    assert (pair["count"], pair["kernel_ns"]) == (15, 15_000)
    groups = {row["name"]: (row["count"], row["sum_ns"], row["max_ns"]) for row in seen.rows("kernel_groups")}
    # Kernels shorter than a microsecond are not rounded away.
    assert groups == {"Cijk_Ailk_Bljk": (15, 4_500, 300), "elementwise": (15, 10_500, 700)}


@pytest.mark.parametrize("older", [False, True])
def test_collectives_are_told_by_name_where_the_recording_has_no_metadata(bench: Any, older: bool) -> None:
    execution = execute(jobs.exposed_collective(steps=3))
    found = document(execution, Style(older=older))
    for event in found["traceEvents"]:
        for told in ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name"):
            event.get("args", {}).pop(told, None)
    tables = tables_of(bench.read(found))
    (row,) = tables["exposed_collectives"].rows(named=True)
    assert (row["operation"], row["count"], row["group_size"], row["in_elements"]) == ("all_reduce", 3, None, None)
    assert row["exposed_ns"] == Truth(execution).totals().exposed_comm_ns


def test_a_graph_is_one_launch_of_many_kernels(bench: Any) -> None:
    seen = Measured(bench, jobs.graph_replay(steps=3, kernels=50))
    (delay,) = seen.rows("launch_delays")
    assert (delay["count"], delay["unlinked"]) == (3, 0)
    assert seen.rows("kernel_groups")[0]["count"] == 150
    assert {row["length"]: row["count"] for row in seen.rows("kernel_sequences")} == {2: 75, 3: 50, 4: 37, 5: 30}


def test_forward_and_backward_by_autograds_numbers(bench: Any) -> None:
    seen = Measured(bench, jobs.backward_thread(steps=3))
    spans = seen.rows("phase_spans")
    assert Counter(row["phase"] for row in spans) == {"forward": 3, "backward": 3}
    launched: Counter[str] = Counter()
    for task in seen.execution.tasks:
        launched["backward" if "backward" in task.name else "forward"] += task.end_ns - task.start_ns
    told: Counter[str] = Counter()
    for row in seen.rows("phase_stats"):
        told[row["phase"] or "none"] += row["device_ns"]
    update = 3 * us(20)
    assert told == {"backward": launched["backward"], "forward": launched["forward"] - update, "none": update}
