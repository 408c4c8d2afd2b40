"""Executes a program: every host thread has a clock, every stream works in order, waits wait.

The model: a runtime call costs the host ``call_ns``. What it submits can start ``latency_ns`` after the call began,
not before the work in front of it on its stream (and ``between_ns`` later), nor before the events its stream waits
for. A stream holds ``queue_depth`` submissions that have not started; a full one holds the host up. Streams do not
slow each other down. Calls take effect in the order in which they begin.
"""

import msgspec

from synthetic.program import (
    Await,
    Begin,
    End,
    Program,
    Record,
    Signal,
    SpanKind,
    StreamWait,
    Submit,
    Synchronize,
    Thread,
    Work,
    WorkKind,
    us,
)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Costs of a machine, in ns."""

    op_ns: int = us(4)
    """dispatch of an op before what is inside it"""
    op_end_ns: int = us(1)
    call_ns: int = us(5)
    event_ns: int = us(2)
    """calls that record events and let streams wait"""
    latency_ns: int = us(6)
    between_ns: int = us(1)
    """the device's own pause between two tasks of a stream; none inside a graph"""
    sync_ns: int = us(3)
    """from the end of what was waited for to the return of the wait"""
    queue_depth: int = 1024

    def scaled(self, factor: int) -> "Machine":
        """The same machine with every time multiplied."""
        times = {name: getattr(self, name) * factor for name in self.__struct_fields__ if name != "queue_depth"}
        return msgspec.structs.replace(self, **times)


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span of a host thread that the recording shows."""

    kind: SpanKind
    name: str
    thread: int
    start_ns: int
    end_ns: int
    depth: int
    sequence: int | None
    forward_thread: int | None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime call."""

    name: str
    thread: int
    start_ns: int
    end_ns: int
    correlation: int
    op: int | None
    """index in ``spans`` of the innermost op around it"""
    waits: bool
    """whether the host waited for the device in it"""
    stream: int | None
    event: str | None = None
    recorded_by: int | None = None
    """correlation of the call that recorded the event"""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Work on the device."""

    kind: WorkKind
    name: str
    stream: int
    start_ns: int
    end_ns: int
    call: int
    """index in ``calls`` of the launch"""
    size_bytes: int | None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread did from one time to another: the moments of a thread cover all of its time."""

    thread: int
    start_ns: int
    end_ns: int
    cause: str | None
    awaited: int | None = None
    """thread whose signal it waited for"""


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened."""

    spans: list[Span]
    calls: list[Call]
    tasks: list[Task]
    moments: dict[int, list[Moment]]
    threads: list[tuple[int, str, bool]]
    """number, name, recorded"""


class Deadlock(Exception):
    """Threads wait for signals that nobody gives."""


class _Stream:
    def __init__(self) -> None:
        self.end_ns: int | None = None
        self.not_before_ns = 0
        self.starts: list[int] = []


class _Event(msgspec.Struct):
    ns: int
    correlation: int


class _Clock:
    """One thread on its way through its instructions."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.now = 0
        self.position = 0
        self.open: list[tuple[Begin, int, int]] = []

    @property
    def next(self) -> object:
        done = self.position >= len(self.thread.instructions)
        return None if done else self.thread.instructions[self.position]


class _Run:
    def __init__(self, program: Program, machine: Machine) -> None:
        self.machine = machine
        self.clocks = [_Clock(thread) for thread in program.threads]
        self.streams: dict[int, _Stream] = {}
        self.events: dict[str, _Event] = {}
        self.signals: dict[str, tuple[int, int]] = {}
        self.spans: list[Span | None] = []
        self.calls: list[Call] = []
        self.tasks: list[Task] = []
        self.moments: dict[int, list[Moment]] = {thread.number: [] for thread in program.threads}

    def run(self) -> None:
        while True:
            pending = [clock for clock in self.clocks if clock.next is not None]
            ready = [one for one in pending if not isinstance(one.next, Await) or one.next.name in self.signals]
            if not ready:
                if pending:
                    raise Deadlock(", ".join(f"{one.thread.name} waits for {one.next}" for one in pending))
                return
            clock = min(ready, key=lambda one: one.now)
            instruction = clock.next
            clock.position += 1
            getattr(self, f"_{type(instruction).__name__.lower()}")(clock, instruction)

    def _pass(self, clock: _Clock, until_ns: int, cause: str | None, awaited: int | None = None) -> None:
        if until_ns > clock.now:
            number = clock.thread.number
            moment = Moment(thread=number, start_ns=clock.now, end_ns=until_ns, cause=cause, awaited=awaited)
            self.moments[number].append(moment)
            clock.now = until_ns

    def _call(
        self,
        clock: _Clock,
        name: str,
        end_ns: int,
        cause: str,
        *,
        waits: bool = False,
        stream: int | None = None,
        event: str | None = None,
    ) -> int:
        """Note a call from now to its end and pass the time; its index in ``calls``."""
        op = next((place for begin, place, _ in reversed(clock.open) if begin.kind == "op"), None)
        self.calls.append(
            Call(
                name=name,
                thread=clock.thread.number,
                start_ns=clock.now,
                end_ns=end_ns,
                correlation=len(self.calls) + 1,
                op=op,
                waits=waits,
                stream=stream,
                event=event,
                recorded_by=self.events[event].correlation if event in self.events else None,
            )
        )
        self._pass(clock, end_ns, cause)
        return len(self.calls) - 1

    def _begin(self, clock: _Clock, one: Begin) -> None:
        clock.open.append((one, len(self.spans), clock.now))
        self.spans.append(None)
        self._pass(clock, clock.now + (self.machine.op_ns if one.kind == "op" else 0), "launch")

    def _end(self, clock: _Clock, one: End) -> None:
        begin, place, start_ns = clock.open.pop()
        self._pass(clock, clock.now + (self.machine.op_end_ns if begin.kind == "op" else 0), "launch")
        self.spans[place] = Span(
            kind=begin.kind,
            name=begin.name,
            thread=clock.thread.number,
            start_ns=start_ns,
            end_ns=clock.now,
            depth=len(clock.open),
            sequence=begin.sequence,
            forward_thread=begin.forward_thread,
        )

    def _work(self, clock: _Clock, one: Work) -> None:
        if one.call is None:
            self._pass(clock, clock.now + one.ns, one.cause)
        else:
            self._call(clock, one.call, clock.now + one.ns, one.cause)

    def _submit(self, clock: _Clock, one: Submit) -> None:
        stream = self.streams.setdefault(one.stream, _Stream())
        taken_ns = clock.now
        if len(stream.starts) >= self.machine.queue_depth:
            taken_ns = max(taken_ns, stream.starts[-self.machine.queue_depth])
        available_ns = max(taken_ns + self.machine.latency_ns, stream.not_before_ns)
        if stream.end_ns is not None:
            available_ns = max(available_ns, stream.end_ns + self.machine.between_ns)
        call = len(self.calls)
        stream.starts.append(available_ns)
        for name, ns in one.tasks:
            end_ns = max(available_ns, one.peer_ns or 0) + ns
            self.tasks.append(
                Task(
                    kind=one.kind,
                    name=name,
                    stream=one.stream,
                    start_ns=available_ns,
                    end_ns=end_ns,
                    call=call,
                    size_bytes=one.size_bytes,
                )
            )
            available_ns = end_ns
        stream.end_ns = available_ns
        back_ns = taken_ns + self.machine.call_ns
        if one.blocks:
            back_ns = max(back_ns, stream.end_ns)
        self._call(clock, one.call, back_ns, "sync" if one.blocks else "launch", waits=one.blocks, stream=one.stream)

    def _record(self, clock: _Clock, one: Record) -> None:
        done_ns = max(clock.now, self._drained([one.stream]))
        self.events[one.event] = _Event(done_ns, len(self.calls) + 1)
        self._call(
            clock, "cudaEventRecord", clock.now + self.machine.event_ns, "launch", stream=one.stream, event=one.event
        )

    def _streamwait(self, clock: _Clock, one: StreamWait) -> None:
        stream = self.streams.setdefault(one.stream, _Stream())
        stream.not_before_ns = max(stream.not_before_ns, self.events[one.event].ns)
        end_ns = clock.now + self.machine.event_ns
        self._call(clock, "cudaStreamWaitEvent", end_ns, "launch", stream=one.stream, event=one.event)

    def _synchronize(self, clock: _Clock, one: Synchronize) -> None:
        if one.event is not None:
            name, done_ns = "cudaEventSynchronize", self.events[one.event].ns
        elif one.stream is not None:
            name, done_ns = "cudaStreamSynchronize", self._drained([one.stream])
        else:
            name, done_ns = "cudaDeviceSynchronize", self._drained(self.streams)
        end_ns = max(clock.now, done_ns) + self.machine.sync_ns
        self._call(clock, name, end_ns, "sync", waits=True, stream=one.stream, event=one.event)

    def _drained(self, streams: "list[int] | dict[int, _Stream]") -> int:
        ends = (self.streams[number].end_ns for number in streams if number in self.streams)
        return max((end for end in ends if end is not None), default=0)

    def _signal(self, clock: _Clock, one: Signal) -> None:
        self.signals[one.name] = (clock.now, clock.thread.number)

    def _await(self, clock: _Clock, one: Await) -> None:
        given_ns, giver = self.signals[one.name]
        self._pass(clock, given_ns, one.cause, None if one.cause else giver)


def execute(program: Program, machine: Machine | None = None) -> Execution:
    """Run a program.

    Raises:
        Deadlock: threads wait for signals that nobody gives.
        KeyError: an event is waited for that was not recorded before.
        ValueError: a span is left open.
    """
    run = _Run(program, machine or Machine())
    run.run()
    if any(span is None for span in run.spans):
        raise ValueError("a span is left open: every Begin needs an End")
    return Execution(
        spans=[span for span in run.spans if span is not None],
        calls=run.calls,
        tasks=run.tasks,
        moments=run.moments,
        threads=[(thread.number, thread.name, thread.recorded) for thread in program.threads],
    )
