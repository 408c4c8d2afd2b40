"""Whatever is done to a sound trace: it is read or refused in words, and sound events stay exact."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from slipstream.ingest import read
from slipstream.model import BadInput

COMMON = settings(deadline=30_000, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)


def element(number):
    kinds = [
        {
            "cat": "cpu_op",
            "name": f"aten::op{number}",
            "pid": 7,
            "tid": 7,
            "args": {"External id": number, "Input Dims": [[2, 3], []]},
        },
        {
            "cat": "kernel",
            "name": f"gemm<{number}, [x]>",
            "pid": 0,
            "tid": 7,
            "args": {"device": 0, "stream": 7, "correlation": number},
        },
        {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "args": {"correlation": number - 1}},
        {"cat": "python_function", "name": 'a\\b.py(3): "f"\u00e9', "pid": 7, "tid": 7, "args": {"Python id": number}},
    ]
    return {"ph": "X", "ts": 1000.125 + 10 * number, "dur": 5.5, **kinds[number % len(kinds)]}


ELEMENTS = [element(number) for number in range(24)]
TEXTS = [
    json.dumps(
        {"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": ELEMENTS, "traceName": "t"}, indent=2
    ).encode(),
    json.dumps({"traceEvents": ELEMENTS, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}]}).encode(),
    json.dumps(ELEMENTS, separators=(",", ":")).encode(),
]
TRUTH = {(1000.125 + 10 * number, event["name"]) for number, event in enumerate(ELEMENTS)}


def tried(folder: Path, content: bytes):
    path = folder / "trace.json"
    path.write_bytes(content)
    try:
        return read(path)
    except BadInput:
        return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@given(text=st.sampled_from(TEXTS), at=st.integers(0, 10_000), packed=st.booleans())
@settings(COMMON, max_examples=140)
def test_cut_anywhere(folder, text, at, packed):
    content = gzip.compress(text) if packed else text
    assume(at < len(content))
    trace = tried(folder, content[:at])
    if trace is not None and trace.events.height:
        # What is there is exact, in order, and from the beginning on.
        count = trace.events.height
        assert trace.events["name"].to_list() == [event["name"] for event in ELEMENTS[:count]]
        assert trace.events["ts_ns"].to_list() == [10_000 * number for number in range(count)]
        assert trace.integrity.grade >= "B"


@given(
    text=st.sampled_from(TEXTS),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3),
)
@settings(COMMON, max_examples=220)
def test_changed_bytes(folder, text, changes):
    content = bytearray(text)
    for at, value in changes:
        content[at % len(content)] = value
    trace = tried(folder, bytes(content))
    assert trace is None or trace.element_count >= trace.events.height
    if trace is not None and trace.events.height > 20:
        names = trace.events["name"].to_list()
        sound = sum(event["name"] in names for event in ELEMENTS)
        assert sound >= trace.events.height - 2 * len(changes)


@given(
    text=st.sampled_from(TEXTS), piece=st.tuples(st.integers(0, 10_000), st.integers(1, 400)), to=st.integers(0, 10_000)
)
@settings(COMMON, max_examples=140)
def test_spliced_pieces(folder, text, piece, to):
    start = piece[0] % len(text)
    to %= len(text)
    tried(folder, text[:to] + text[start : start + piece[1]] + text[to:])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"]


@given(
    number=st.integers(0, len(ELEMENTS) - 1),
    key=st.sampled_from(KEYS),
    value=JSON,
    order=st.permutations(KEYS),
)
@settings(COMMON, max_examples=140)
def test_other_types_and_orders(folder, number, key, value, order):
    changed = {**ELEMENTS[number], key: value}
    changed = {name: changed[name] for name in order if name in changed}
    elements = [*ELEMENTS[:number], changed, *ELEMENTS[number + 1 :]]
    trace = tried(folder, json.dumps({"traceEvents": elements}).encode())
    assert trace is not None
    others = trace.events.filter(trace.events["event"] != number)
    assert others["name"].to_list() == [event["name"] for at, event in enumerate(ELEMENTS) if at != number]
    assert others["dur_ns"].to_list() == [5500] * (len(ELEMENTS) - 1)


@given(
    value=JSON,
    arg=st.sampled_from(["External id", "stream", "correlation", "device", "Input Dims", "Call stack", "grid"]),
)
@settings(COMMON, max_examples=80)
def test_any_argument(folder, value, arg):
    elements = [{**event, "args": {**event["args"], arg: value}} for event in ELEMENTS]
    trace = tried(folder, json.dumps({"traceEvents": elements}).encode())
    assert trace is not None
    assert trace.events.height == len(ELEMENTS)
    assert trace.ops.height == trace.kernels.height == 6


@given(content=st.binary(max_size=400) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(COMMON, max_examples=140)
def test_anything_at_all(folder, content):
    tried(folder, content)


@pytest.mark.parametrize("depth", [50, 5000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting(folder, depth, opening, closing):
    deep = opening * depth + "1" + closing * depth
    text = json.dumps({"traceEvents": [*ELEMENTS[:3], {**ELEMENTS[3], "args": {"x": "DEEP"}}]}).replace('"DEEP"', deep)
    trace = tried(folder, text.encode())
    assert trace is not None
    assert trace.events.height >= 3


@pytest.mark.parametrize("filler", [b'"', b"\\", b"{", b"[", b"},{", b'"ph":', b"\x00", b'",'])
def test_long_runs_of_one_thing_end_soon(folder, filler):
    text = TEXTS[1]
    tried(folder, text[:1500] + filler * (2_000_000 // len(filler)) + text[1500:])
