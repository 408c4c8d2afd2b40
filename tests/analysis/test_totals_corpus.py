"""Totals of real recordings against an independent pass over the raw JSON.

Plain Python on purpose: no code of the product, no floating point (times are read as decimal text), unions by a sweep
over borders.
"""

import gzip
import json
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import slipstream
from slipstream.analysis import tables_of
from slipstream.store import Trace

CORPUS = os.environ.get("SLIPSTREAM_CORPUS")
FILES = sorted(Path(CORPUS).rglob("*.json.gz")) if CORPUS else []
if not FILES:
    pytest.skip("real recordings are found through SLIPSTREAM_CORPUS", allow_module_level=True)

KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "set",
    "Kernel": "kernel",
    "Memcpy": "copy",
    "Memset": "set",
}
# Rows of an MTIA device share one category.
MTIA = {"dma_request": "copy", "event_record": None, "event_wait": None}

Span = tuple[int, int]


def nanoseconds(value: str | int) -> int:
    exact = Decimal(value) * 1000
    assert exact == int(exact)
    return int(exact)


def kind_of(event: dict[str, Any]) -> str | None:
    if event.get("ph") != "X":
        return None
    if event.get("cat") == "mtia_ccp_events":
        return MTIA.get(event["name"], "kernel")
    return KINDS.get(event.get("cat", ""))


def is_collective(event: dict[str, Any]) -> bool:
    named = re.search("(nccl|rccl)(dev)?kernel|cross_device_reduce|multimem_all_reduce", event["name"], re.IGNORECASE)
    return bool(named) or "Collective name" in event.get("args", {})


def covered(wanted: list[Span], without: list[Span]) -> int:
    """Time in at least one span of ``wanted`` and in none of ``without``."""
    borders = [(at, 0, change) for start, end in wanted for at, change in ((start, 1), (end, -1))]
    borders += [(at, 1, change) for start, end in without for at, change in ((start, 1), (end, -1))]
    total, last, depth = 0, 0, [0, 0]
    for at, which, change in sorted(borders):
        if depth[0] > 0 and depth[1] == 0:
            total += at - last
        depth[which] += change
        last = at
    return total


def expected(path: Path) -> dict[str, int | None]:
    with gzip.open(path) as file:
        document = json.loads(file.read(), parse_float=str, strict=False)
    events = document["traceEvents"]
    spans: dict[str, list[Span]] = {"kernel": [], "copy": [], "set": [], "collective": []}
    for event in events:
        kind = kind_of(event)
        if kind is not None:
            start = nanoseconds(event["ts"])
            kind = "collective" if kind == "kernel" and is_collective(event) else kind
            spans[kind].append((start, start + nanoseconds(event["dur"])))
    kernels = spans["kernel"] + spans["collective"]
    device = kernels + spans["copy"] + spans["set"]
    counts = {"events": len(events), "gpu_events": len(device), "kernels": len(kernels)}
    times: dict[str, int] = {
        "gpu_sum_ns": sum(end - start for start, end in device),
        "gpu_busy_ns": covered(device, []),
        "kernel_sum_ns": sum(end - start for start, end in kernels),
        "comm_ns": covered(spans["collective"], []),
        "exposed_comm_ns": covered(spans["collective"], spans["kernel"]),
        "memcpy_ns": covered(spans["copy"], []),
        "exposed_memcpy_ns": covered(spans["copy"], kernels),
    }
    return {**counts, **{name: value if device else None for name, value in times.items()}}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_totals_agree_to_the_nanosecond(path: Path) -> None:
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    assert tables_of(trace).row("totals") == expected(path)
