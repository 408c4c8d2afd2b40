"""An execution as PyTorch's profiler would have exported it: Kineto JSON of the newer or the older schema."""

import json
from pathlib import Path
from typing import Any

import msgspec

from synthetic.machine import Call, Execution, Span, Task

Event = dict[str, Any]
PID = 4242
FIRST_CORRELATION = 1000
NEWER = {
    "op": "cpu_op",
    "python": "python_function",
    "annotation": "user_annotation",
    "step": "user_annotation",
    "kernel": "kernel",
    "collective": "kernel",
    "copy": "gpu_memcpy",
    "set": "gpu_memset",
    "runtime": "cuda_runtime",
}
OLDER = {
    "op": "Operator",
    "annotation": "Operator",
    "step": "Operator",
    "kernel": "Kernel",
    "collective": "Kernel",
    "copy": "Memcpy",
    "set": "Memset",
    "runtime": "Runtime",
}
SYNCS = {
    "cudaStreamSynchronize": "Stream Sync",
    "cudaEventSynchronize": "Event Sync",
    "cudaDeviceSynchronize": "Context Sync",
    "cudaStreamWaitEvent": "Stream Wait Event",
}


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How to write it."""

    older: bool = False
    """the schema until PyTorch 1.12: other categories, whole microseconds since 1970, no Python and no sync rows"""
    offset_ns: int = 4_458_676_388_068_000
    """time of the execution's 0 on the file's clock"""
    base_ns: int = 1_711_964_646_000_000_000
    """baseTimeNanoseconds; the older schema adds it to every time instead"""
    device: str = "NVIDIA A100-SXM4-80GB"
    rank: int | None = None
    world_size: int | None = None
    sync_rows: bool = True


def document(execution: Execution, style: Style | None = None) -> dict[str, Any]:
    """The whole file as a dictionary.

    Raises:
        ValueError: the older schema cannot tell a time that is no whole microsecond.
    """
    return _Writer(execution, style or Style()).document()


def write(execution: Execution, path: Path, style: Style | None = None) -> Path:
    """Write the file."""
    path.write_text(json.dumps(document(execution, style)))
    return path


class _Writer:
    def __init__(self, execution: Execution, style: Style) -> None:
        self.execution = execution
        self.style = style
        self.categories = OLDER if style.older else NEWER
        self.recorded = {number for number, _, recorded in execution.threads if recorded}
        self.first = min(self.recorded)

    def document(self) -> dict[str, Any]:
        end_ns = max([0, *(span.end_ns for span in self.execution.spans), *(t.end_ns for t in self.execution.tasks)])
        whole: Event = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans"}
        whole |= {"tid": "PyTorch Profiler", "args": {"Op count": 0}, **self.times(0, end_ns)}
        events = [*self.host(), *self.device(), *self.names(), whole]
        events.append(
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": self.micros(end_ns)}
        )
        found: dict[str, Any] = {"schemaVersion": 1}
        if self.style.rank is not None:
            found["distributedInfo"] = {
                "backend": "nccl",
                "rank": self.style.rank,
                "world_size": self.style.world_size,
            }
        found["deviceProperties"] = [{"id": 0, "name": self.style.device, "computeMajor": 8, "computeMinor": 0}]
        if not self.style.older:
            found["baseTimeNanoseconds"] = self.style.base_ns
        return found | {"traceName": "synthetic.json", "displayTimeUnit": "ms", "traceEvents": events}

    def micros(self, ns: int) -> int | float:
        if not self.style.older:
            return (ns + self.style.offset_ns) / 1000
        absolute = ns + self.style.offset_ns + self.style.base_ns
        return self.whole(absolute)

    def whole(self, ns: int) -> int:
        if ns % 1000:
            raise ValueError(f"the older schema has whole microseconds, not {ns} ns")
        return ns // 1000

    def times(self, start_ns: int, end_ns: int) -> Event:
        length = end_ns - start_ns
        return {"ts": self.micros(start_ns), "dur": self.whole(length) if self.style.older else length / 1000}

    def where(self, thread: int) -> Event:
        tid = PID + thread - self.first
        return {"pid": PID, "tid": str(tid) if self.style.older else tid}

    def on_stream(self, stream: int | None) -> Event:
        if self.style.older:
            return {"pid": 0, "tid": f"stream {stream}"}
        return {"pid": 0, "tid": -1 if stream is None else stream}

    def host(self) -> list[Event]:
        rows: list[Event] = []
        parents: dict[tuple[int, int], int] = {}
        sequences: dict[int, Span] = {}
        for place, span in enumerate(self.execution.spans):
            if span.thread not in self.recorded or span.kind not in self.categories:
                continue
            args: Event = {"External id": place + 1, "Ev Idx": place}
            if span.kind == "python":
                outer = (parents.get((span.thread, depth)) for depth in range(span.depth - 1, -1, -1))
                args = {"Python parent id": next((one for one in outer if one is not None), None)}
                args |= {"Python id": place + 1, "Ev Idx": place}
                parents[span.thread, span.depth] = place + 1
            for inner in [key for key in parents if key[0] == span.thread and key[1] > span.depth]:
                del parents[inner]
            if span.sequence is not None:
                forward = span.forward_thread
                args |= {"Sequence number": span.sequence, "Fwd thread id": 0 if forward is None else forward}
            row: Event = {"ph": "X", "cat": self.categories[span.kind], "name": span.name, **self.where(span.thread)}
            rows.append(row | self.times(span.start_ns, span.end_ns) | {"args": args})
            if span.sequence is not None and span.forward_thread is None:
                sequences[span.sequence] = span
            elif span.sequence in sequences:
                rows += self.arrow(span.sequence, "fwdbwd", sequences[span.sequence], span)
        return rows

    def arrow(self, number: int, kind: str, tail: Span | Call, head: Span) -> list[Event]:
        both: Event = {"id": number, "cat": kind, "name": kind}
        start = {"ph": "s", **both, **self.where(tail.thread), "ts": self.micros(tail.start_ns)}
        return [start, {"ph": "f", **both, **self.where(head.thread), "ts": self.micros(head.start_ns), "bp": "e"}]

    def device(self) -> list[Event]:
        rows: list[Event] = []
        for call in self.execution.calls:
            if call.thread in self.recorded:
                rows += self.call(call)
        for task in self.execution.tasks:
            rows += self.task(task)
        return rows + self.projected_steps()

    def call(self, call: Call) -> list[Event]:
        number = call.correlation + FIRST_CORRELATION
        args: Event = {"cbid": 1, "correlation": number}
        if call.op is not None:
            args["external id" if self.style.older else "External id"] = call.op + 1
        row: Event = {"ph": "X", "cat": self.categories["runtime"], "name": call.name, **self.where(call.thread)}
        rows = [row | self.times(call.start_ns, call.end_ns) | {"args": args}]
        if call.name in SYNCS and self.style.sync_rows and not self.style.older:
            rows.append(self.sync(call, number))
        return rows

    def sync(self, call: Call, number: int) -> Event:
        kind = SYNCS[call.name]
        stream = -1 if call.stream is None else call.stream
        args: Event = {"cuda_sync_kind": kind, "stream": stream, "correlation": number, "device": 0, "context": 1}
        if call.recorded_by is not None:
            recorded = self.execution.calls[call.recorded_by - 1]
            args |= {
                "wait_on_stream": recorded.stream,
                "wait_on_cuda_event_record_corr_id": call.recorded_by + FIRST_CORRELATION,
                "wait_on_cuda_event_id": 1,
            }
        row: Event = {"ph": "X", "cat": "cuda_sync", "name": kind, **self.on_stream(call.stream)}
        return row | self.times(call.start_ns, call.end_ns) | {"args": args}

    def task(self, task: Task) -> list[Event]:
        call = self.execution.calls[task.call]
        number = call.correlation + FIRST_CORRELATION
        args: Event = {"device": 0, "context": 1, "stream": task.stream, "correlation": number}
        if task.kind in ("kernel", "collective"):
            args |= {"queued": 0, "grid": [108, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
        elif task.size_bytes is not None:
            args["bytes"] = task.size_bytes
        if task.kind == "collective":
            elements = (task.size_bytes or 0) // 4
            args |= {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements}
            args |= {"Group size": self.style.world_size or 2, "dtype": "Float", "Process Group Name": "0"}
        where = self.on_stream(task.stream)
        row: Event = {"ph": "X", "cat": self.categories[task.kind], "name": task.name, **where}
        flow: Event = {"id": number, "cat": "async" if self.style.older else "ac2g"}
        flow["name"] = "launch" if self.style.older else "ac2g"
        return [
            row | self.times(task.start_ns, task.end_ns) | {"args": args},
            {"ph": "f", **flow, **where, "ts": self.micros(task.start_ns), "bp": "e"},
            {"ph": "s", **flow, **self.where(call.thread), "ts": self.micros(call.start_ns)},
        ]

    def projected_steps(self) -> list[Event]:
        """The marks of steps on the device's rows: they are no steps of their own."""
        if self.style.older:
            return []
        rows: list[Event] = []
        for mark in (span for span in self.execution.spans if span.kind == "step"):
            launched = [
                task
                for task in self.execution.tasks
                if mark.start_ns <= self.execution.calls[task.call].start_ns < mark.end_ns
            ]
            if launched:
                span = self.times(min(t.start_ns for t in launched), max(t.end_ns for t in launched))
                row: Event = {"ph": "X", "cat": "gpu_user_annotation", "name": mark.name, "args": {"External id": 1}}
                rows.append(row | self.on_stream(launched[0].stream) | span)
        return rows

    def names(self) -> list[Event]:
        named: list[tuple[str, Event, str]] = [
            ("process_name", {"pid": PID, "tid": 0}, "python"),
            ("process_name", {"pid": 0, "tid": 0}, "python"),
        ]
        named += [
            ("thread_name", self.where(number), name)
            for number, name, _ in self.execution.threads
            if number in self.recorded
        ]
        streams = sorted({task.stream for task in self.execution.tasks})
        named += [("thread_name", self.on_stream(stream), f"stream {stream} ") for stream in streams]
        ts = self.micros(0)
        return [{"ph": "M", "name": kind, **where, "ts": ts, "args": {"name": name}} for kind, where, name in named]
