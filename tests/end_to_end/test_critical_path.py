"""Critical paths of programs whose causes are planted, and what holds for the path of any recording."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import slipstream
from end_to_end.conftest import Bench
from slipstream.analysis import tables_of
from slipstream.analysis.graph import LAUNCH, Graph, graph_of
from slipstream.model import NotEnoughData
from slipstream.store import Tables, Trace
from synthetic import jobs
from synthetic.machine import Machine, execute
from synthetic.program import Program
from synthetic.truth import Truth
from synthetic.writer import document

ALL = (
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


def shares(tables: Tables) -> dict[str, float]:
    frame = tables["critical_path"]
    sums = frame.group_by(pl.col("kind").cast(pl.String)).agg(pl.col("dur_ns").sum())
    whole = frame["dur_ns"].sum()
    return {kind: ns / whole for kind, ns in sums.iter_rows()}


def assert_covers_window_and_steps(tables: Tables) -> None:
    frame, window = tables["critical_path"], tables.row("window")
    assert frame["start_ns"][0] == window["start_ns"]
    end = frame["start_ns"] + frame["dur_ns"]
    assert end[-1] == window["end_ns"]
    assert (end[:-1] == frame["start_ns"][1:]).all(), "no hole, no overlap"
    assert (frame["dur_ns"] > 0).all()
    sums = frame.drop_nulls("step").group_by("step").agg(pl.col("dur_ns").sum())
    steps = tables["steps"].select(step="number", wall="dur_ns")
    joined = sums.join(steps, on="step", how="full")
    assert (joined["dur_ns"] == joined["wall"]).all()


def replayed(graph: Graph) -> np.ndarray:
    """When each task would end if it began as soon as its edges allow; what has none begins as recorded."""
    nodes, edges = graph.nodes, graph.edges
    start, end = nodes.start_ns.copy(), nodes.end_ns.copy()
    order = np.lexsort((np.arange(len(nodes)), nodes.dur_ns, nodes.start_ns))
    for node in order.tolist():
        first, last = graph.incoming[node], graph.incoming[node + 1]
        if last > first:
            source = edges.source[first:last]
            begun = np.where(edges.kind[first:last] == LAUNCH, start[source], end[source])
            start[node] = int((begun + edges.lag_ns[first:last]).max())
            end[node] = start[node] + nodes.dur_ns[node]
    return end


@pytest.mark.parametrize("job", ALL)
def test_the_path_covers_the_window_once_and_the_graph_replays_as_recorded(
    bench: Bench, job: Callable[[], Program]
) -> None:
    tables = tables_of(bench.read(document(execute(job()))))
    assert_covers_window_and_steps(tables)
    assert shares(tables).get("unexplained", 0) < 0.001
    assert tables["graph_edges"]["dropped"].sum() == 0
    graph = graph_of(tables)
    ended = replayed(graph)
    assert (ended <= graph.nodes.end_ns).all(), "no edge asks for more than was seen"
    assert ended.max() == pytest.approx(graph.nodes.end_ns.max(), rel=0.01)


def test_a_healthy_job_is_its_kernels(bench: Bench) -> None:
    assert shares(tables_of(bench.read(document(execute(jobs.healthy())))))["kernel"] > 0.95


def test_a_job_that_makes_its_batches_itself_is_its_loader(bench: Bench) -> None:
    execution = execute(jobs.loader_bound())
    tables = tables_of(bench.read(document(execution)))
    frame = tables["critical_path"].with_columns(pl.col("name").cast(pl.String), pl.col("kind").cast(pl.String))
    loader = frame.filter((pl.col("kind") == "gap") & pl.col("name").str.contains("DataLoader"))["dur_ns"].sum()
    planted = Truth(execution).idle_by_cause()["loader"]
    # All of the loader is on the path, the part that the device's work hid included: batches follow on each other.
    assert loader >= planted
    assert loader == jobs.STEPS * 9_000_000


def test_a_hidden_loader_is_not_on_the_path(bench: Bench) -> None:
    tables = tables_of(bench.read(document(execute(jobs.hidden_loader()))))
    frame = tables["critical_path"].with_columns(pl.col("name").cast(pl.String))
    steps = frame.filter(pl.col("step").is_not_null())
    loader = steps.filter(pl.col("name").str.contains("DataLoader").fill_null(False))["dur_ns"].sum()
    assert loader < 0.05 * steps["dur_ns"].sum()


def test_a_wait_hands_the_path_over_between_device_and_host(bench: Bench) -> None:
    """Each step: kernels, their end, then 1.5 ms of Python."""
    execution = execute(jobs.sync_bound())
    tables = tables_of(bench.read(document(execution)))
    kernels = sum(task.end_ns - task.start_ns for task in execution.tasks if task.kind == "kernel")
    frame = tables["critical_path"]
    on_path = frame.filter(pl.col("kind").cast(pl.String) == "kernel")["dur_ns"].sum()
    assert on_path == pytest.approx(kernels, rel=0.01)
    assert shares(tables)["gap"] * frame["dur_ns"].sum() >= jobs.STEPS * 1_500_000


def test_scaling_all_times_scales_the_path(bench: Bench) -> None:
    plain = tables_of(bench.read(document(execute(jobs.sync_bound()))))["critical_path"]
    twice = tables_of(bench.read(document(execute(jobs.sync_bound().scaled(2), Machine().scaled(2)))))["critical_path"]
    assert (plain["dur_ns"] * 2 == twice["dur_ns"]).all()
    assert (plain["name"].cast(pl.String) == twice["name"].cast(pl.String)).all()


def recordings() -> list[Path]:
    corpus = os.environ.get("SLIPSTREAM_CORPUS")
    return sorted(Path(corpus).rglob("*.json.gz")) if corpus else []


@pytest.mark.skipif(not recordings(), reason="real recordings are found through SLIPSTREAM_CORPUS")
@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_the_path_of_a_real_recording_covers_its_window_and_steps(path: Path) -> None:
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    tables = tables_of(trace)
    try:
        assert_covers_window_and_steps(tables)
    except NotEnoughData as reason:
        assert "activities" in str(reason)  # noqa: PT017
    graph = graph_of(tables)
    assert (graph.released_ns <= graph.nodes.start_ns[graph.edges.target]).all()
    assert (graph.edges.lag_ns >= 0).all()
