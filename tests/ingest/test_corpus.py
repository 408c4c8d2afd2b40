"""Real traces, against a second reading that knows nothing of ours: plain JSON with decimal numbers."""

import gzip
import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from slipstream.ingest import locate, read

CORPUS = os.environ.get("SLIPSTREAM_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="SLIPSTREAM_CORPUS is not set: no real traces to read")
FILES = sorted(Path(CORPUS).rglob("*.json.gz")) if CORPUS else []
KINDS = {
    "kernels": {"kernel", "Kernel"},
    "copies": {"gpu_memcpy", "Memcpy"},
    "sets": {"gpu_memset", "Memset"},
    "python": {"python_function"},
    "runtime": {"cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime"},
    "syncs": {"cuda_sync"},
}


def nanoseconds(value):
    return None if value is None else int(Decimal(value) * 1000)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_event_is_read_exactly_and_none_repaired(file):
    trace = read(file)
    document = json.loads(gzip.decompress(file.read_bytes()), parse_float=Decimal)
    elements = document["traceEvents"]
    events = [(at, event) for at, event in enumerate(elements) if event["ph"] != "M"]
    first = min(nanoseconds(event["ts"]) for _, event in events)
    assert trace.element_count == len(elements)
    assert trace.events["event"].to_list() == [at for at, _ in events]
    assert trace.events["ts_ns"].to_list() == [nanoseconds(event["ts"]) - first for _, event in events]
    assert trace.events["dur_ns"].to_list() == [nanoseconds(event.get("dur")) for _, event in events]
    assert trace.events["name"].to_list() == [event["name"] for _, event in events]
    counts = Counter(event.get("cat") for _, event in events if event["ph"] == "X")
    for table, categories in KINDS.items():
        if "mtia" not in file.name:
            assert trace.table(table).height == sum(counts[category] for category in categories), table
    external = {at: event.get("args", {}).get("External id") for at, event in events}
    assert dict(trace.ops.select("event", "external_id").rows()) == {at: external[at] for at in trace.ops["event"]}
    base = document.get("baseTimeNanoseconds", 0)
    assert int(trace.source.origin_ns) == first + base
    assert {issue.code for issue in trace.integrity.issues} <= {"missing_device_events"}


def test_ranks_of_a_directory():
    found = locate(f"{CORPUS}/two_ranks")
    assert [recording.rank for recording in found] == [0, 1]
    assert [read(recording).source.world_size for recording in found] == [128, 128]
