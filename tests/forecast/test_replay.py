"""Replay, edits and gains against programs whose truth is executed."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

import slipstream
from slipstream.analysis import tables_of
from slipstream.forecast import Replay, ceiling_of, gain_of, replay_of
from slipstream.forecast.edits import cut_waits, removing, scaled
from slipstream.forecast.replay import BEST, WORST
from slipstream.model import NotEnoughData
from slipstream.store import Tables, Trace
from support.forecasts import FORECASTS
from support.tables import make_trace
from synthetic import jobs
from synthetic.changes import CHANGES, random_job, random_machine
from synthetic.machine import Machine, execute
from synthetic.program import Program
from synthetic.truth import Truth
from synthetic.writer import document


def recorded(program: Program, folder: Path, machine: Machine | None = None) -> tuple[Truth, Tables]:
    """The truth of a program's execution and the tables of its recording."""
    truth = Truth(execute(program, machine))
    path = folder / "trace.json"
    path.write_text(json.dumps(document(truth.execution)))
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    return truth, tables_of(trace)


def length(truth: Truth) -> int:
    return truth.end_ns - truth.start_ns


@pytest.mark.parametrize(
    "job",
    [
        jobs.healthy,
        jobs.loader_bound,
        jobs.sync_bound,
        jobs.launch_bound,
        jobs.exposed_collective,
        jobs.backward_thread,
    ],
    ids=lambda job: job.__name__,
)
def test_unedited_replay_takes_as_long_as_the_recording(job, tmp_path):
    truth, tables = recorded(job(), tmp_path)
    replay = replay_of(tables)
    assert int(replay.recorded_ns.sum()) == length(truth)
    assert replay.error < 0.001
    assert all(error < 0.01 for error in replay.step_errors)


@pytest.mark.parametrize("number", range(6))
def test_every_change_of_a_random_program_is_forecast(number, tmp_path):
    dice = random.Random(7_000 + number)
    machine, program = random_machine(dice), random_job(dice)
    before, tables = recorded(program, tmp_path, machine)
    replay = replay_of(tables)
    for name, change in CHANGES.items():
        after = Truth(execute(change(program), machine))
        gain = gain_of(replay, FORECASTS[name](tables))
        assert gain.expected == pytest.approx(1 - length(after) / length(before), abs=0.02), name
        assert gain.low <= gain.expected <= gain.high


def test_two_fixes_are_replayed_together_not_added(tmp_path):
    program = jobs.loader_bound()
    before, tables = recorded(program, tmp_path)
    replay = replay_of(tables)
    loader = FORECASTS["loader hidden"](tables)
    kernels = FORECASTS["precision halved"](tables)
    both = gain_of(replay, [*loader, *kernels]).expected
    after = Truth(execute(CHANGES["precision halved"](CHANGES["loader hidden"](program))))
    assert both == pytest.approx(1 - length(after) / length(before), abs=0.01)
    # Faster kernels do little beside a loader that starves them, and much once it is hidden.
    assert both > 0.1 + gain_of(replay, loader).expected + gain_of(replay, kernels).expected


def test_wait_for_what_is_done_anyway_costs_nothing(tmp_path):
    _, tables = recorded(jobs.harmless_item(), tmp_path)
    replay = replay_of(tables)
    calls = tables["blocking_calls"]["event"].to_numpy()
    assert gain_of(replay, [cut_waits(replay.graph, calls, "no wait")]).expected < 0.01


def test_factors_of_two_edits_of_one_task_multiply(tmp_path):
    _, tables = recorded(jobs.loader_bound(), tmp_path)
    replay = replay_of(tables)
    spans = tables["loader_spans"]
    begin = spans["start_ns"].to_numpy()
    graph = replay.graph

    def halved(factor: float):
        return removing(graph, graph.main, begin, begin + spans["dur_ns"].to_numpy(), (factor,) * 3, "")

    assert replay.steps_with([halved(0.5), halved(0.5)]).tolist() == replay.steps_with([halved(0.25)]).tolist()


def test_interval_spans_worst_and_best_case(tmp_path):
    _, tables = recorded(jobs.loader_bound(), tmp_path)
    replay = replay_of(tables)
    spans = tables["loader_spans"]
    begin = spans["start_ns"].to_numpy()
    edit = removing(
        replay.graph, replay.graph.main, begin, begin + spans["dur_ns"].to_numpy(), (0.8, 0.5, 0.1), "some of it stays"
    )
    gain = gain_of(replay, [edit])
    total = replay.recorded_ns.sum()
    worst, best = ((total - replay.steps_with([edit], case).sum()) / total for case in (WORST, BEST))
    assert gain.low <= worst < gain.expected < best <= gain.high
    assert gain.assumptions == ("some of it stays",)
    assert (gain.basis, gain.ceiling, gain.unit) == ("replay", False, "step_time")


def test_slower_tasks_are_a_loss(tmp_path):
    _, tables = recorded(jobs.healthy(), tmp_path)
    replay = replay_of(tables)
    kernels = np.flatnonzero(replay.graph.nodes.kind == 4)
    assert gain_of(replay, [scaled(kernels, (2.0, 2.0, 2.0), "twice as slow")]).expected < -0.5


def test_recording_that_its_graph_does_not_explain_is_refused(tmp_path):
    _, tables = recorded(jobs.healthy(), tmp_path)
    replay = replay_of(tables)
    spoilt = Replay(
        **{name: getattr(replay, name) for name in Replay.__struct_fields__ if name != "replayed_ns"},
        replayed_ns=(replay.recorded_ns * 0.9).astype(np.int64),
    )
    with pytest.raises(NotEnoughData, match=r"takes 10 % less time than it took"):
        gain_of(spoilt, FORECASTS["precision halved"](tables))


def test_window_without_host_thread_is_not_replayed():
    with pytest.raises(NotEnoughData, match="no host thread"):
        replay_of(tables_of(make_trace()))


def test_ceiling_is_what_a_problem_costs():
    gain = ceiling_of(300, 1000)
    assert (gain.low, gain.expected, gain.high, gain.ceiling, gain.basis) == (0.0, 0.3, 0.3, True, "cost")
    assert ceiling_of(5, 0).high == 0.0
