"""Every rule for edges, from recordings of a few rows."""

import polars as pl

from slipstream.analysis.graph import EDGE_KINDS, NODE_KINDS, Graph, graph_of
from slipstream.store import Tables
from support.tables import make_tables, span, step


def edges(graph: Graph, tables: Tables, kind: str) -> set[tuple[str, str]]:
    """Names of sources and targets."""
    names = dict(tables["events"].select("event", pl.col("name").cast(pl.String)).iter_rows())
    mine = graph.edges.kind == EDGE_KINDS.index(kind)  # type: ignore[arg-type]
    events = graph.nodes.event
    return {
        (names.get(int(events[a]), "-"), names.get(int(events[b]), "-"))
        for a, b in zip(graph.edges.source[mine], graph.edges.target[mine], strict=True)
    }


def test_a_thread_is_covered_without_holes_by_tasks_and_waits() -> None:
    tables = make_tables(
        ops=[span("outer", 10, 80), span("inner", 20, 30), span("later", 120, 30)],
        runtime=[span("cudaLaunchKernel", 25, 5, correlation=1)],
    )
    nodes = graph_of(tables).nodes
    got = [(NODE_KINDS[k], s, d) for k, s, d in zip(nodes.kind, nodes.start_ns, nodes.dur_ns, strict=True)]
    assert got == [
        ("gap", 10, 10),
        ("gap", 20, 5),  # inner is no leaf: it launches
        ("runtime", 25, 5),
        ("gap", 30, 20),
        ("gap", 50, 40),
        ("gap", 90, 30),
        ("op", 120, 30),
    ]


def test_a_call_without_length_still_launches() -> None:
    tables = make_tables(
        ops=[span("op", 0, 100)],
        runtime=[span("cudaLaunchKernel", 50, 0, correlation=1)],
        kernels=[span("k", 60, 30, correlation=1)],
    )
    graph = graph_of(tables)
    assert edges(graph, tables, "launch") == {("cudaLaunchKernel", "k")}


def test_a_replayed_graph_has_one_launch_edge_per_stream() -> None:
    tables = make_tables(
        ops=[span("op", 0, 10)],
        runtime=[span("cudaGraphLaunch", 0, 5, correlation=1)],
        kernels=[
            span("a", 20, 10, correlation=1),
            span("b", 31, 10, correlation=1),
            span("c", 20, 30, correlation=1, stream=8),
        ],
    )
    graph = graph_of(tables)
    assert edges(graph, tables, "launch") == {("cudaGraphLaunch", "a"), ("cudaGraphLaunch", "c")}
    assert edges(graph, tables, "stream") == {("a", "b")}


def test_a_stream_waits_for_an_event_by_the_call_that_recorded_it_not_by_its_handle() -> None:
    """The event is recorded twice on stream 7; the wait names the first recording."""
    tables = make_tables(
        ops=[span("op", 0, 1000)],
        runtime=[
            span("cudaLaunchKernel", 0, 5, correlation=1),
            span("cudaEventRecord", 10, 5, correlation=2),
            span("cudaStreamWaitEvent", 20, 5, correlation=3),
            span("cudaLaunchKernel", 30, 5, correlation=4),
            span("cudaEventRecord", 40, 5, correlation=5),
            span("cudaLaunchKernel", 50, 5, correlation=6),
        ],
        kernels=[
            span("first", 100, 100, correlation=1),
            span("second", 200, 100, correlation=4),
            span("waiting", 205, 50, correlation=6, stream=8),
        ],
        syncs=[
            span(
                "Stream Wait Event", 60, 0, stream=8, correlation=3, wait_on_stream=7, wait_on_correlation=2, sync_id=1
            )
        ],
    )
    assert edges(graph_of(tables), tables, "stream_wait") == {("first", "waiting")}


def test_queued_work_that_begins_as_another_stream_ends_is_taken_to_have_waited() -> None:
    rows = {
        "ops": [span("op", 0, 1000)],
        "runtime": [
            span("cudaLaunchKernel", 0, 5, correlation=1),
            span("cudaLaunchKernel", 10, 5, correlation=2),
        ],
    }
    long = span("reduce", 20, 200_000, correlation=1, stream=40)
    near = make_tables(**rows, kernels=[long, span("next", 205_000, 10, correlation=2)])
    assert edges(graph_of(near), near, "inferred_wait") == {("reduce", "next")}
    far = make_tables(**rows, kernels=[long, span("next", 240_000, 10, correlation=2)])
    assert edges(graph_of(far), far, "inferred_wait") == set()
    soon = make_tables(**rows, kernels=[{**long, "dur_ns": 20_000}, span("next", 30_000, 10, correlation=2)])
    assert edges(graph_of(soon), soon, "inferred_wait") == set(), "nothing to explain"


def test_a_synchronisation_of_a_known_stream_waits_for_that_one_alone() -> None:
    rows = {
        "ops": [span("op", 0, 20)],
        "runtime": [
            span("cudaLaunchKernel", 0, 5, correlation=1),
            span("cudaLaunchKernel", 6, 5, correlation=2),
            span("cudaStreamSynchronize", 30, 570, correlation=3),
        ],
        "kernels": [span("mine", 40, 300, correlation=1), span("other", 40, 500, correlation=2, stream=8)],
    }
    known = make_tables(**rows, syncs=[span("Stream Sync", 30, 570, stream=7, correlation=3)])
    assert edges(graph_of(known), known, "sync") == {("mine", "cudaStreamSynchronize")}
    unknown = make_tables(**rows)
    assert edges(graph_of(unknown), unknown, "sync") == {("other", "cudaStreamSynchronize")}


def test_a_blocking_copy_waits_for_itself_and_is_launched_before() -> None:
    tables = make_tables(
        ops=[span("aten::item", 0, 600)],
        runtime=[span("cudaLaunchKernel", 0, 5, correlation=1), span("cudaMemcpyAsync", 10, 500, correlation=2)],
        kernels=[span("long", 20, 400, correlation=1)],
        copies=[span("Memcpy DtoH (Device -> Pageable)", 430, 20, correlation=2, kind="DtoH", pageable=True)],
    )
    graph = graph_of(tables)
    copy = "Memcpy DtoH (Device -> Pageable)"
    assert edges(graph, tables, "sync") == {(copy, "cudaMemcpyAsync")}
    assert ("cudaMemcpyAsync", copy) in edges(graph, tables, "launch")
    assert edges(graph, tables, "stream") == {("long", copy)}
    call = [int(d) for d, e in zip(graph.nodes.dur_ns, graph.nodes.event, strict=True) if e == 2]
    assert call == [0, 60], "the wait is no work of the call: before it nothing, after it 60"


def backward(
    runtime: list[dict[str, object]] | None = None, kernels: list[dict[str, object]] | None = None, **more: object
) -> Tables:
    """Main thread 0 asks thread 1 for the backward pass within its gap from 10 to 100."""
    return make_tables(
        runtime=runtime or [],
        kernels=kernels or [],
        steps=[step(0, 0, 120)],
        ops=[
            span("forward", 0, 10, sequence=5, fwd_thread=0),
            span("optimizer", 100, 20),
            span("AddBackward0", 20, 30, thread=1, **more),
            span("MulBackward0", 60, 20, thread=1, **more),
        ],
    )


def test_the_backward_thread_is_started_in_a_gap_and_ends_it() -> None:
    tables = backward(sequence=5, fwd_thread=1)
    graph = graph_of(tables)
    assert ("-", "AddBackward0") in edges(graph, tables, "hand_over")
    assert ("MulBackward0", "-") in edges(graph, tables, "hand_over")
    assert ("forward", "AddBackward0") in edges(graph, tables, "forward")
    path = tables["critical_path"].select(pl.col("kind").cast(pl.String), "start_ns", "dur_ns", "thread").rows()
    assert path == [
        ("op", 0, 10, 0),
        ("gap", 10, 10, 0),
        ("op", 20, 30, 1),
        ("gap", 50, 10, 1),
        ("op", 60, 20, 1),
        ("gap", 80, 20, 0),
        ("op", 100, 20, 0),
    ]


def test_without_arrows_and_numbers_a_thread_that_launches_in_the_gaps_alone_is_one() -> None:
    call = [span("cudaLaunchKernel", 65, 5, thread=1, correlation=1)]
    tables = backward(call, kernels=[span("mul", 75, 5, correlation=1)])
    assert ("-", "AddBackward0") in edges(graph_of(tables), tables, "hand_over")
    watching = backward(call)
    assert edges(graph_of(watching), watching, "hand_over") == set(), "a thread that launches nothing may be any"


def test_a_thread_that_works_beside_the_main_thread_is_none() -> None:
    tables = make_tables(
        steps=[step(0, 0, 120)],
        ops=[
            span("forward", 0, 60),
            span("optimizer", 100, 20),
            span("beside", 10, 45, thread=1),
            span("in a gap", 70, 20, thread=1),
        ],
    )
    assert edges(graph_of(tables), tables, "hand_over") == set()


def test_a_batch_handed_over_by_another_thread_ends_the_loaders_wait() -> None:
    tables = make_tables(
        steps=[step(0, 0, 120)],
        ops=[
            span("before", 0, 10),
            span("train", 100, 20),
            span("train more", 20, 1),
            span("aten::pin_memory", 15, 60, thread=2),
        ],
        annotations=[span("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 30, 60)],
    )
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert edges(graph_of(tables), tables, "loader") == {("aten::pin_memory", loader)}
    kinds = tables["critical_path"].select(pl.col("kind").cast(pl.String), "start_ns", "dur_ns", "thread").rows()
    assert ("op", 15, 60, 2) in kinds


def test_what_has_no_predecessor_is_hung_on_the_main_thread_and_counted() -> None:
    tables = make_tables(ops=[span("op", 0, 100)], kernels=[span("unlinked", 150, 10)])
    assert edges(graph_of(tables), tables, "assumed") == {("op", "unlinked")}
    counts = dict(tables["graph_edges"].select(pl.col("kind").cast(pl.String), "edges").iter_rows())
    assert counts["assumed"] == 1
    assert set(counts) == set(EDGE_KINDS)
