"""What is true of an execution, counted the simple way: sweep over all times at which something begins or ends."""

import itertools
from collections import Counter
from collections.abc import Iterable

import msgspec

from synthetic.machine import Call, Execution, Task

Spans = list[tuple[int, int]]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums and unions over everything."""

    gpu_events: int
    kernels: int
    gpu_sum_ns: int
    gpu_busy_ns: int
    kernel_sum_ns: int
    comm_ns: int
    exposed_comm_ns: int
    memcpy_ns: int
    exposed_memcpy_ns: int


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch in which the device did nothing and the host one thing."""

    start_ns: int
    end_ns: int
    cause: str


class Truth:
    """Answers about one execution.

    Args:
        execution: what happened.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        marks = [span for span in execution.spans if span.kind == "step"]
        self.steps = [(int(mark.name.partition("#")[2]), mark.start_ns, mark.end_ns) for mark in marks]
        """number, start and end of each step mark"""
        self.start_ns = min(start for _, start, _ in self.steps)
        last = max(end for _, _, end in self.steps)
        inside = [task.end_ns for task in execution.tasks if self.start_ns <= self.launch(task).start_ns < last]
        self.end_ns = max([last, *inside])
        """end of the last step, or of the last device task launched inside the steps"""

    def launch(self, task: Task) -> Call:
        """The call that submitted a task."""
        return self.execution.calls[task.call]

    @property
    def busy_ns(self) -> int:
        """Device busy in the window."""
        return sum(end - start for start, end in self._in_window(union(_times(self.execution.tasks))))

    @property
    def idle_ns(self) -> int:
        """Device idle in the window."""
        return self.end_ns - self.start_ns - self.busy_ns

    def totals(self) -> Totals:
        """Sums and unions over the whole execution."""
        tasks = self.execution.tasks
        kernels = [task for task in tasks if task.kind in ("kernel", "collective")]
        copies = _times(task for task in tasks if task.kind == "copy")
        collectives = _times(task for task in tasks if task.kind == "collective")
        compute = _times(task for task in tasks if task.kind == "kernel")
        return Totals(
            gpu_events=len(tasks),
            kernels=len(kernels),
            gpu_sum_ns=sum(end - start for start, end in _times(tasks)),
            gpu_busy_ns=_length(union(_times(tasks))),
            kernel_sum_ns=sum(end - start for start, end in _times(kernels)),
            comm_ns=_length(union(collectives)),
            exposed_comm_ns=_length(difference(collectives, compute)),
            memcpy_ns=_length(union(copies)),
            exposed_memcpy_ns=_length(difference(copies, _times(kernels))),
        )

    def parts(self) -> dict[str, int]:
        """Busy time of the window: compute, then communication beside no compute, then copies beside neither."""
        tasks = self.execution.tasks
        compute = self._in_window(union(_times(task for task in tasks if task.kind in ("kernel", "set"))))
        collectives = self._in_window(union(_times(task for task in tasks if task.kind == "collective")))
        copies = self._in_window(union(_times(task for task in tasks if task.kind == "copy")))
        return {
            "compute": _length(compute),
            "exposed_communication": _length(difference(collectives, compute)),
            "exposed_copies": _length(difference(copies, compute + collectives)),
        }

    def idle(self) -> list[Idle]:
        """Idle time of the window, cut by what the thread that launched the next work did meanwhile.

        From the beginning of that launch on, and where the work was launched earlier, it is the launch itself that
        takes its time. What a wait costs beyond its own duration - the host's lead - is not told by this: execute
        the program ``without_waits()`` and compare.
        """
        found: list[Idle] = []
        busy = self._in_window(union(_times(self.execution.tasks)))
        for start, end in difference([(self.start_ns, self.end_ns)], busy):
            starting = [task for task in self.execution.tasks if task.start_ns == end]
            calls = [self.launch(task) for task in starting]
            if not calls:
                found += self._doing(1, start, end)
                continue
            call = min(calls, key=lambda one: one.start_ns)
            launched = max(start, call.start_ns)
            found += self._doing(call.thread, start, launched)
            if end > launched:
                found.append(Idle(start_ns=launched, end_ns=end, cause="launch"))
        return found

    def idle_by_cause(self) -> dict[str, int]:
        """Sum of ``idle`` by cause."""
        sums: Counter[str] = Counter()
        for one in self.idle():
            sums[one.cause] += one.end_ns - one.start_ns
        return dict(sums)

    def gaps_behind_waits(self) -> list[tuple[Call, int]]:
        """For each call that waited: device idle from its last work before the return to the next work launched."""
        waits = sorted((call for call in self.execution.calls if call.waits), key=lambda call: call.start_ns)
        busy = union(_times(self.execution.tasks))
        found = []
        for place, call in enumerate(waits):
            later = [task.start_ns for task in self.execution.tasks if self.launch(task).start_ns >= call.end_ns]
            until = min(later, default=self.end_ns)
            if place + 1 < len(waits):
                until = min(until, max(waits[place + 1].start_ns, call.end_ns))
            before = [end for _, end in busy if end <= call.end_ns]
            since = max([call.start_ns, *before]) if not _inside(call.end_ns, busy) else call.end_ns
            found.append((call, _length(difference([(since, until)], busy))))
        return found

    def _doing(self, thread: int, start: int, end: int) -> list[Idle]:
        found = []
        reached = start
        for moment in self.execution.moments[thread]:
            begin, finish = max(moment.start_ns, start), min(moment.end_ns, end)
            if begin >= finish:
                continue
            reached = finish
            if moment.awaited is not None:
                found += self._doing(moment.awaited, begin, finish)
            elif moment.cause is not None:
                found.append(Idle(start_ns=begin, end_ns=finish, cause=moment.cause))
        if reached < end:
            found.append(Idle(start_ns=reached, end_ns=end, cause="unattributed"))
        return found

    def _in_window(self, spans: Spans) -> Spans:
        clipped = ((max(start, self.start_ns), min(end, self.end_ns)) for start, end in spans)
        return [(start, end) for start, end in clipped if start < end]


def union(spans: Iterable[tuple[int, int]]) -> Spans:
    """Where at least one span is."""
    return _sweep([(list(spans), 1)])


def difference(spans: Iterable[tuple[int, int]], without: Iterable[tuple[int, int]]) -> Spans:
    """Where at least one span is, and none of the others."""
    return _sweep([(list(spans), 1), (list(without), -1_000_000_000)])


def _sweep(groups: list[tuple[Spans, int]]) -> Spans:
    changes: Counter[int] = Counter()
    for spans, weight in groups:
        for start, end in spans:
            changes[start] += weight
            changes[end] -= weight
    found: Spans = []
    level = 0
    times = sorted(changes)
    for time, following in itertools.pairwise(times):
        level += changes[time]
        if level > 0:
            if found and found[-1][1] == time:
                found[-1] = (found[-1][0], following)
            else:
                found.append((time, following))
    return found


def _times(tasks: Iterable[Task]) -> Spans:
    return [(task.start_ns, task.end_ns) for task in tasks]


def _length(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


def _inside(time: int, spans: Spans) -> bool:
    return any(start < time < end for start, end in spans)
