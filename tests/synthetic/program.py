"""A program: the instructions of each host thread, and a builder that reads like a training script.

    job = Program()
    main = job.thread("main")
    with main.step(0):
        main.loader(us(500))
        with main.op("aten::linear"):
            main.kernel("gemm", us(300))
        main.item()

All times are whole nanoseconds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import msgspec

DEFAULT_STREAM = 7
COPY_STREAM = 20
COMMUNICATION_STREAM = 40

SpanKind = Literal["op", "python", "annotation", "step"]
WorkKind = Literal["kernel", "collective", "copy", "set"]


def us(count: float) -> int:
    """Microseconds as nanoseconds."""
    return round(count * 1000)


class Begin(msgspec.Struct, frozen=True, kw_only=True):
    """A span opens: op, Python call, annotation or step mark."""

    kind: SpanKind
    name: str
    sequence: int | None = None
    """autograd sequence number"""
    forward_thread: int | None = None
    """thread number of the forward op, for a backward op"""


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The innermost open span of the thread closes."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The host is busy with something of its own."""

    ns: int
    cause: str
    """root cause of what the device idles meanwhile"""
    call: str | None = None
    """runtime call to record it as; None: no row of its own"""


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime call that puts work on a stream."""

    kind: WorkKind
    tasks: tuple[tuple[str, int], ...]
    """name and duration (ns) of each task, in order; more than one for a graph. A collective's duration is its
    transfer, after the last peer has arrived."""
    stream: int
    call: str
    blocks: bool = False
    """whether the call returns only when the work is done"""
    size_bytes: int | None = None
    peer_ns: int | None = None
    """when the last peer arrives at a collective; None: before this rank"""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An event is recorded on a stream."""

    event: str
    stream: int


class StreamWait(msgspec.Struct, frozen=True, kw_only=True):
    """Later work of a stream waits for an event."""

    event: str
    stream: int


class Synchronize(msgspec.Struct, frozen=True, kw_only=True):
    """The host waits: for a stream, for an event, or (both None) for all streams."""

    stream: int | None = None
    event: str | None = None


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Tells other threads that this one has got here."""

    name: str


class Await(msgspec.Struct, frozen=True, kw_only=True):
    """Waits until another thread has signalled."""

    name: str
    cause: str | None = None
    """root cause of what the device idles meanwhile; None: what the other thread does"""


Instruction = Begin | End | Work | Submit | Record | StreamWait | Synchronize | Signal | Await


class Thread:
    """One host thread; its methods append instructions.

    Args:
        name: as the recording calls it.
        number: position among the threads of the program, from 1.
        recorded: whether the profiler sees it (worker processes are not seen).
    """

    def __init__(self, name: str, number: int, recorded: bool = True) -> None:
        self.name = name
        self.number = number
        self.recorded = recorded
        self.instructions: list[Instruction] = []

    def add(self, *instructions: Instruction) -> None:
        """Append instructions as they are."""
        self.instructions.extend(instructions)

    @contextmanager
    def _span(
        self, kind: SpanKind, name: str, sequence: int | None = None, forward: int | None = None
    ) -> Iterator[None]:
        self.add(Begin(kind=kind, name=name, sequence=sequence, forward_thread=forward))
        yield
        self.add(End())

    # Spans: ``with main.op("aten::mm"): ...``

    def step(self, number: int) -> AbstractContextManager[None]:
        """A training step with its mark."""
        return self._span("step", f"ProfilerStep#{number}")

    def op(
        self, name: str, sequence: int | None = None, forward: "Thread | None" = None
    ) -> AbstractContextManager[None]:
        """An op; the machine adds its dispatch time. ``forward`` is the thread of the forward op it belongs to."""
        return self._span("op", name, sequence, None if forward is None else forward.number)

    def python(self, name: str) -> AbstractContextManager[None]:
        """A Python call, such as ``train.py(12): main``."""
        return self._span("python", name)

    def annotation(self, name: str) -> AbstractContextManager[None]:
        """A marked range."""
        return self._span("annotation", name)

    # What the host does by itself.

    def work(self, ns: int, cause: str = "host") -> None:
        """Something that takes time and leaves no row: Python, a sleep."""
        self.add(Work(ns=ns, cause=cause))

    def loader(self, ns: int) -> None:
        """The training thread makes a batch, inside the range that a single-process loader opens."""
        with self.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            self.work(ns, "loader")

    def loader_wait(self, signal: str) -> None:
        """The training thread waits for the batch that a worker thread signals."""
        with self.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
            self.add(Await(name=signal, cause="loader"))

    def allocate(self, ns: int, call: str = "cudaMalloc") -> None:
        """The allocator asks the driver for memory."""
        self.add(Work(ns=ns, cause="allocator", call=call))

    # Work for the device.

    def kernel(self, name: str, ns: int, stream: int = DEFAULT_STREAM) -> None:
        """Launch one kernel."""
        self.add(Submit(kind="kernel", tasks=((name, ns),), stream=stream, call="cudaLaunchKernel"))

    def compute(self, op: str, ns: int, stream: int = DEFAULT_STREAM) -> None:
        """An op that launches one kernel."""
        with self.op(op):
            self.kernel(op.removeprefix("aten::") + "_kernel", ns, stream)

    def graph(self, kernels: Sequence[tuple[str, int]], stream: int = DEFAULT_STREAM) -> None:
        """Launch a recorded graph: one call, many kernels."""
        self.add(Submit(kind="kernel", tasks=tuple(kernels), stream=stream, call="cudaGraphLaunch"))

    def memset(self, ns: int, size_bytes: int = 4096, stream: int = DEFAULT_STREAM) -> None:
        """Fill memory."""
        tasks = (("Memset (Device)", ns),)
        self.add(Submit(kind="set", tasks=tasks, stream=stream, call="cudaMemsetAsync", size_bytes=size_bytes))

    def _copy(self, way: str, ns: int, size_bytes: int, stream: int, blocks: bool) -> None:
        tasks = ((f"Memcpy {way}", ns),)
        self.add(
            Submit(
                kind="copy", tasks=tasks, stream=stream, call="cudaMemcpyAsync", blocks=blocks, size_bytes=size_bytes
            )
        )

    def upload(self, ns: int, size_bytes: int = 1 << 20, stream: int = DEFAULT_STREAM) -> None:
        """Copy a batch from pinned memory; the host goes on."""
        with self.op("aten::to"), self.op("aten::copy_"):
            self._copy("HtoD (Pinned -> Device)", ns, size_bytes, stream, blocks=False)

    def pageable_upload(self, ns: int, size_bytes: int = 1 << 20, stream: int = DEFAULT_STREAM) -> None:
        """Copy a batch from pageable memory; the host waits for it."""
        with self.op("aten::to"), self.op("aten::copy_"):
            self._copy("HtoD (Pageable -> Device)", ns, size_bytes, stream, blocks=True)
            self.synchronize(stream)

    def item(self, ns: int = 2000, stream: int = DEFAULT_STREAM) -> None:
        """Read one value back."""
        with self.op("aten::item"), self.op("aten::_local_scalar_dense"):
            self._copy("DtoH (Device -> Pageable)", ns, 4, stream, blocks=True)
            self.synchronize(stream)

    def all_reduce(
        self, ns: int, size_bytes: int = 1 << 22, peer_ns: int | None = None, stream: int = COMMUNICATION_STREAM
    ) -> None:
        """Exchange gradients.

        Args:
            ns: transfer once all have arrived.
            size_bytes: of the message.
            peer_ns: when the last peer arrives; None: before this rank.
            stream: stream of the communication.
        """
        with self.op("c10d::allreduce_"), self.op("record_param_comms"):
            tasks = (("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ns),)
            self.add(
                Submit(
                    kind="collective",
                    tasks=tasks,
                    stream=stream,
                    call="cudaLaunchKernelExC",
                    size_bytes=size_bytes,
                    peer_ns=peer_ns,
                )
            )

    # Order.

    def record(self, event: str, stream: int = DEFAULT_STREAM) -> None:
        """Record an event on a stream."""
        self.add(Record(event=event, stream=stream))

    def stream_wait(self, event: str, stream: int) -> None:
        """Let a stream wait for an event."""
        self.add(StreamWait(event=event, stream=stream))

    def synchronize(self, stream: int | None = None, event: str | None = None) -> None:
        """Wait for a stream, for an event, or for the device."""
        self.add(Synchronize(stream=stream, event=event))

    def signal(self, name: str) -> None:
        """Let other threads go on."""
        self.add(Signal(name=name))

    def wait_for(self, name: str) -> None:
        """Wait for another thread's signal."""
        self.add(Await(name=name))


class Program:
    """Threads with their instructions."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []

    def __repr__(self) -> str:
        """Every instruction, for failures to show."""
        return "\n".join(
            f"{thread.name}:\n" + "\n".join(f"    {one}" for one in thread.instructions) for thread in self.threads
        )

    def thread(self, name: str, recorded: bool = True) -> Thread:
        """Add a thread."""
        self.threads.append(Thread(name, len(self.threads) + 1, recorded))
        return self.threads[-1]

    def edited(self, change: Callable[[Instruction], Instruction | None]) -> "Program":
        """The program after a fix: every instruction replaced by what ``change`` returns; None leaves it out."""
        program = Program()
        for thread in self.threads:
            copy = program.thread(thread.name, thread.recorded)
            copy.add(*(after for after in map(change, thread.instructions) if after is not None))
        return program

    def without_cause(self, cause: str) -> "Program":
        """The program without the host's own work of one cause; spans around it stay."""
        return self.edited(lambda one: None if isinstance(one, Work) and one.cause == cause else one)

    def without_waits(self) -> "Program":
        """The program without any wait of the host for the device; copies become asynchronous, from pinned memory."""

        def change(one: Instruction) -> Instruction | None:
            if isinstance(one, Synchronize):
                return None
            if isinstance(one, Submit) and one.blocks:
                tasks = tuple((name.replace("Pageable", "Pinned"), ns) for name, ns in one.tasks)
                return msgspec.structs.replace(one, blocks=False, tasks=tasks)
            return one

        return self.edited(change)

    def scaled(self, factor: int) -> "Program":
        """The same with every duration of host work and of device tasks times a whole number."""

        def change(one: Instruction) -> Instruction:
            if isinstance(one, Work):
                return msgspec.structs.replace(one, ns=one.ns * factor)
            if isinstance(one, Submit):
                tasks = tuple((name, ns * factor) for name, ns in one.tasks)
                peer = None if one.peer_ns is None else one.peer_ns * factor
                return msgspec.structs.replace(one, tasks=tasks, peer_ns=peer)
            return one

        return self.edited(change)
