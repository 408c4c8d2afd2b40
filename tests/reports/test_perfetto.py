"""Slices for Perfetto: bars nest, ids are kept apart, what was recorded is there with its arguments."""

import json
from itertools import pairwise

import msgspec
import pytest

from slipstream.analysis import tables_of
from slipstream.model import Evidence, Finding
from slipstream.reports.perfetto import Slice, timeline
from slipstream.reports.perfetto.lanes import lanes
from slipstream.rules.diagnosis import diagnose
from slipstream.store import excerpt
from support.tables import make_trace, span, step


def recording(rank=None):
    return make_trace(
        rank=rank,
        steps=[step(0, 0, 1_000_000), step(1, 1_000_000, 1_000_000)],
        ops=[
            span("aten::mm", 1_000_000, 200_123, external_id=7, input_dims="[[2,3],[3,4]]", sequence=4),
            span("aten::outer", 900_000, 1_500_000),
        ],
        runtime=[span("cudaLaunchKernel", 1_100_000, 5_000, correlation=1)],
        kernels=[span("gemm", 1_400_000, 300_000, correlation=1)],
        flows=[{"flow_id": 1, "start": True, "ts_ns": 1_100_000}, {"flow_id": 1, "ts_ns": 1_300_000}],
    )


def sliced(trace, start=1_000_000, end=2_000_000, shift=0, findings=()):
    diagnosis = msgspec.structs.replace(diagnose(trace).diagnosis, findings=tuple(findings))
    part = excerpt(trace, start, end)
    return Slice(trace=part, tables=tables_of(trace), diagnosis=diagnosis, start_ns=start, end_ns=end, shift_ns=shift)


def elements(*parts):
    document, notes = timeline(parts)
    return json.loads(document)["traceEvents"], notes


def bars(found, category):
    return [element for element in found if element["ph"] == "X" and element["cat"] == category]


def test_bars_keep_times_to_the_nanosecond_and_their_arguments():
    found, _ = elements(sliced(recording()))
    (mm,) = (bar for bar in bars(found, "cpu_op") if bar["name"] == "aten::mm")
    assert (mm["ts"], mm["dur"]) == (1000.0, 200.123)
    assert mm["args"] == {"External id": 7, "Input Dims": [[2, 3], [3, 4]], "Sequence number": 4}


def test_what_reaches_beyond_the_slice_is_clipped_and_says_so():
    found, _ = elements(sliced(recording()))
    (outer,) = (bar for bar in bars(found, "cpu_op") if bar["name"] == "aten::outer")
    assert (outer["ts"], outer["dur"]) == (1000.0, 1000.0)
    assert outer["args"]["clipped"] == "began 900000 ns, lasted 1500000 ns"


def test_an_arrow_needs_both_its_ends():
    whole, _ = elements(sliced(recording()))
    assert [element["ph"] for element in whole if element["ph"] in "sf"] == ["s", "f"]
    cut, _ = elements(sliced(recording(), start=1_200_000))
    assert not [element for element in cut if element["ph"] in "sf"]


def test_ranks_share_no_process_and_no_arrow():
    found, _ = elements(sliced(recording(0)), sliced(recording(1), shift=250))
    processes = [element["pid"] for element in found if element["name"] == "process_name"]
    assert len(processes) == len(set(processes)) == 4
    names = {element["args"]["name"] for element in found if element["name"] == "process_name"}
    assert {"slipstream rank 0", "slipstream rank 1"} < names
    ids = [element["id"] for element in found if element["ph"] == "s"]
    assert len(set(ids)) == 2
    starts = sorted(bar["ts"] for bar in bars(found, "cpu_op") if bar["name"] == "aten::mm")
    assert starts == [1000.0, 1000.25]


def test_findings_are_a_track_each_with_the_evidence_that_lies_in_the_slice():
    finding = Finding(
        id="SYN001-1",
        code="SYN001",
        title="item() waits",
        fix_class="exact",
        cost_ns=5,
        cost_ns_per_step=5,
        evidence=(
            Evidence(event="cudaStreamSynchronize", ts_ns=1_500_000, dur_ns=10_000, note="4 bytes"),
            Evidence(event="before", ts_ns=10, dur_ns=10),
        ),
    )
    found, _ = elements(sliced(recording(), findings=[finding]))
    (bar,) = (bar for bar in bars(found, "slipstream") if bar["name"] == "item() waits")
    assert bar["ts"] == 1500.0
    assert bar["args"] == {"finding": "SYN001-1", "event": "cudaStreamSynchronize", "note": "4 bytes"}


def test_idle_causes_and_critical_path_cover_the_slice():
    found, notes = elements(sliced(recording()))
    assert notes == ()
    by_track = {}
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name" and e["pid"] == 1}
    for bar in bars(found, "slipstream"):
        by_track.setdefault(names[bar["tid"]], []).append(bar)
    assert sum(bar["dur"] for bar in by_track["critical path"]) == pytest.approx(1000)
    assert sum(bar["dur"] for bar in by_track["idle causes"]) == pytest.approx(700)
    counters = [e for e in found if e["ph"] == "C"]
    assert (counters[0]["ts"], counters[0]["args"]["waiting"]) == (1000.0, 0)
    assert max(e["args"]["waiting"] for e in counters) == 1


def test_a_track_that_cannot_be_drawn_is_told_with_its_reason():
    trace = make_trace(annotations=[span("mark", 0, 100)])
    _, notes = elements(sliced(trace, 0, 100))
    assert [note.split(":")[0] for note in notes] == [
        "no track 'idle causes'",
        "no track 'critical path'",
        "no track 'launch queue'",
    ]


def test_bars_that_cross_get_a_track_of_their_own():
    trace = make_trace(ops=[span("a", 0, 60), span("b", 50, 60), span("c", 60, 10), span("inside", 10, 10)])
    found, _ = elements(sliced(trace, 0, 200))
    tracks = {bar["name"]: bar["tid"] for bar in bars(found, "cpu_op")}
    assert tracks["a"] == tracks["inside"] == tracks["c"] != tracks["b"]
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name" and e["pid"] != 1}
    assert names[tracks["b"]].endswith("(crossing 1)")


def test_within_a_lane_spans_nest():
    spans = sorted(
        ((s, s + d) for s, d in [(0, 9), (1, 3), (2, 5), (4, 4), (8, 6), (9, 1), (9, 0)]), key=lambda x: (x[0], -x[1])
    )
    chosen = {}
    for one, lane in zip(spans, lanes(spans), strict=True):
        chosen.setdefault(lane, []).append(one)
    for lane in chosen.values():
        for (a, b), (c, d) in pairwise(lane):
            assert c >= b or d <= b or a == c
