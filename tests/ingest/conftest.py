"""Tiny traces, written as Kineto writes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipstream.ingest import read
from slipstream.store import Trace

Event = dict[str, Any]


class Kineto:
    """Makes elements and files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def op(self, name: str = "aten::add", ts: Any = 100.0, dur: Any = 10.0, **args: Any) -> Event:
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur, "args": args}

    def python(self, name: str, ts: Any = 100.0, dur: Any = 10.0) -> Event:
        args = {"Python id": 1, "Python parent id": None}
        return {
            "ph": "X",
            "cat": "python_function",
            "name": name,
            "pid": 7,
            "tid": 7,
            "ts": ts,
            "dur": dur,
            "args": args,
        }

    def mark(self, name: str, ts: Any, dur: Any, tid: int = 7, cat: str = "user_annotation") -> Event:
        return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur}

    def launch(self, correlation: Any, ts: Any, name: str = "cudaLaunchKernel", cat: str = "cuda_runtime") -> Event:
        args = {"correlation": correlation, "External id": 5}
        return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": 2.0, "args": args}

    def kernel(self, correlation: Any, ts: Any, dur: Any, name: str = "gemm", stream: Any = 7, **args: Any) -> Event:
        args = {"device": 0, "stream": stream, "correlation": correlation, **args}
        return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur, "args": args}

    def text(self, events: list[Any], **top: Any) -> str:
        elements = ",\n  ".join(json.dumps(event, indent=4) for event in events)
        values = "".join(f'"{key}": {json.dumps(value)},\n' for key, value in top.items())
        return (
            f'{{\n  "schemaVersion": 1,\n  {values}  "traceEvents": [\n  {elements}\n  ],\n  "traceName": "t.json"\n}}'
        )

    def write(self, content: str | bytes, name: str = "trace.json") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, events: list[Any] | str | bytes, **top: Any) -> Trace:
        return read(self.write(self.text(events, **top) if isinstance(events, list) else events))


@pytest.fixture
def kineto(tmp_path: Path) -> Kineto:
    return Kineto(tmp_path)


@pytest.fixture
def issues() -> Callable[[Trace], dict[str, int]]:
    def counts(trace: Trace) -> dict[str, int]:
        return {issue.code: issue.count for issue in trace.integrity.issues}

    return counts
