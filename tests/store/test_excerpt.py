"""Part of a recording: what lies in a span, and the launches of its device work."""

import pytest

from slipstream.store import excerpt
from support.tables import make_trace, span, step


def whole():
    return make_trace(
        steps=[step(0, 0, 100), step(1, 100, 100)],
        ops=[span("aten::before", 0, 100), span("aten::across", 90, 30), span("aten::at", 150, 0)],
        runtime=[span("cudaLaunchKernel", 50, 5, correlation=1), span("cudaLaunchKernel", 60, 5, correlation=2)],
        kernels=[span("late", 120, 30, correlation=1, event=50), span("early", 70, 30, correlation=2)],
        collectives=[{"event": 50, "operation": "all_reduce", "source": "name"}],
        flows=[{"flow_id": 1, "start": True, "ts_ns": 50}, {"flow_id": 1, "ts_ns": 120}],
        memory=[{"ts_ns": 99, "size_bytes": 8}, {"ts_ns": 100, "size_bytes": 16}, {"ts_ns": 200, "size_bytes": 32}],
    )


def test_rows_that_touch_the_span_from_outside_are_not_in_it():
    part = excerpt(whole(), 100, 200)
    assert part.ops["name"].to_list() == ["aten::across", "aten::at"]
    assert part.steps["number"].to_list() == [1]
    assert part.kernels["name"].to_list() == ["late"]
    assert part.memory["size_bytes"].to_list() == [16]
    assert part.flows["ts_ns"].to_list() == [120]


def test_the_launch_of_device_work_comes_along_and_no_other_call_from_before():
    part = excerpt(whole(), 100, 200)
    assert part.runtime["correlation"].to_list() == [1]
    assert set(part.events["event"]) == {*part.ops["event"], *part.runtime["event"], *part.kernels["event"]}
    assert part.element_count == part.events.height == 4


def test_collectives_go_with_their_kernels():
    assert excerpt(whole(), 100, 200).collectives.height == 1
    assert not excerpt(whole(), 60, 100).collectives.height


def test_the_whole_span_is_the_whole_recording():
    trace = whole()
    part = excerpt(trace, 0, 201)
    for name in trace:
        assert part.table(name).equals(trace.table(name)), name


def test_an_empty_span_is_refused():
    with pytest.raises(ValueError, match="empty"):
        excerpt(whole(), 100, 100)
