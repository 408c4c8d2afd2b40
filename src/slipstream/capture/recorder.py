"""From what the hooks tell to training steps, and from steps to what is recorded.

Nothing here waits for a device while no window is open. Times are those of the monotonic clock.
"""

import functools
import os
import statistics
import threading
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Concatenate, ParamSpec

import torch

from slipstream.capture import endings
from slipstream.capture.archive import Archive
from slipstream.capture.batches import Batch, describe
from slipstream.capture.clock import monotonic_ns
from slipstream.capture.job import Job
from slipstream.capture.kineto import inside_backward
from slipstream.capture.measurements import BACKWARD, OPTIMIZER, PLACES, PLAIN, RECORDED, WARMUP, Measurements
from slipstream.capture.memory import MemoryReader
from slipstream.capture.rank_folder import RankFolder
from slipstream.capture.requests import REQUEST, Requests
from slipstream.capture.segments import Segment, joined
from slipstream.capture.sessions import Sessions
from slipstream.capture.turns import Turns
from slipstream.capture.user_code import Place, UserCode
from slipstream.capture.watching import Watcher
from slipstream.capture.window import Window

COUNTED_BATCHES = 512
"""Batches whose padding is counted one by one; later it is one in sixteen, and every one in the window."""
COUNT_EVERY = 16
WRITE_EVERY_NS = 60_000_000_000
"""How often the measured tables are written outside the window: what a killed job leaves."""

_PHASES = {"recording": RECORDED, "between": PLAIN, "places": PLACES, "over": PLAIN}

Given = ParamSpec("Given")


def guarded(
    method: Callable[Concatenate["Recorder", Given], None],
) -> Callable[Concatenate["Recorder", Given], None]:
    """A failure of the recording must not become one of the job: it ends the recording and is told."""

    def call(self: "Recorder", /, *args: Given.args, **kwargs: Given.kwargs) -> None:
        if self.off:
            return
        try:
            method(self, *args, **kwargs)
        except Exception:
            self.fail(traceback.format_exc())

    return functools.update_wrapper(call, method)


class Recorder:
    """The recording of one process. A forked child starts with an empty one.

    Args:
        job: what to record, and where to.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.off = False
        """Nothing is measured any more: another process writes for this rank, or the recording failed."""
        self.inside_optimizer = False
        self.optimizer_calls = 0
        self.done = 0
        self.user_code = UserCode.of_this_process()
        self.measured = Measurements()
        self.window = Window(job.steps, job.warmup, job.places, monotonic_ns)
        self.folder = RankFolder(Path(job.folder))
        archive = Archive(job.watch.keep) if job.watch is not None else None
        self.sessions = Sessions(self.window, self.folder, self.measured, self.user_code, archive)
        self._watcher = Watcher(job.watch.max_overhead) if job.watch is not None else None
        self._requests = Requests(Path(job.folder) / REQUEST)
        self._pid = os.getpid()
        self._turns: Turns[Segment] = Turns()
        self._segment: Segment | None = None
        self._deferred: list[int] = []
        self._durations: deque[int] = deque(maxlen=8)
        self._thread: int | None = None
        self._claimed = False
        self._acting = False
        self._memory = MemoryReader()
        self._batches = 0
        self._waits_since_backward = 0
        self._waits_per_backward: deque[int] = deque(maxlen=8)
        self._fetched_with_grad = True
        self._trains_on_batches_without_grad = False
        self._told = False

    @guarded
    def step_told(self, frame: FrameType | None) -> None:
        """The job itself says that a step has ended; from now on that alone ends steps.

        Args:
            frame: who says so.
        """
        if not self._is_here():
            return
        if not self._told:
            self._told = True
            self._turns = Turns()
            if self.done:
                self.sessions.restart(self.done)
        now = monotonic_ns()
        segment = self._segment_from(now)
        segment.end_ns = now
        segment.place = segment.place or self.user_code.innermost(frame)
        self._segment = Segment(now)
        self._take_turns([(0, segment)], frame)

    @guarded
    def optimizer_stepped(
        self, optimizer: object, began_ns: int, ended_ns: int, frame: FrameType | None, skipped: bool | None
    ) -> None:
        """An optimizer has stepped, or GradScaler has left its step out.

        Args:
            optimizer: the innermost real one.
            began_ns: when the call began.
            ended_ns: when it returned.
            frame: who called.
            skipped: whether the update was left out; None: only the device knows.
        """
        if inside_backward():
            # The profiler must be left alone until the backward pass, which goes on around this, has returned.
            segment = self._segment_from(began_ns)
            segment.optimizer_ns += ended_ns - began_ns
            segment.optimizer_steps += 1
            segment.place = segment.place or self.user_code.innermost(frame)
            if not self._told:
                self._deferred.append(id(optimizer))
            return
        if not self._claimed and not self.done:
            self._thread = threading.get_ident()
        if not self._is_here():
            return
        self._take_deferred(ended_ns, frame)
        segment = self._segment_from(began_ns)
        segment.end_ns = ended_ns
        segment.optimizer_ns += ended_ns - began_ns
        segment.optimizer_steps += not skipped
        segment.skipped = skipped
        segment.place = self.user_code.innermost(frame)
        self._span(OPTIMIZER, began_ns, ended_ns, segment.place)
        if self._told:
            return
        self._segment = Segment(ended_ns)
        self._take_turns([(id(optimizer), segment)], frame)

    @guarded
    def fetch_begins(self) -> None:
        """The training asks for a batch. Inside the window this may be the start of an evaluation."""
        if self.window.phase not in ("recording", "places") or not self._is_here():
            return
        usual = statistics.median(self._waits_per_backward) if self._waits_per_backward else None
        many = usual is not None and self._waits_since_backward > 2 * usual + 1
        if many or not (torch.is_grad_enabled() or self._trains_on_batches_without_grad):
            self.sessions.interrupt(self.done)

    @guarded
    def fetched(
        self, iterator: Any, batch: object, first: bool, began_ns: int, ended_ns: int, frame: FrameType | None
    ) -> None:
        """A data loader has handed over a batch.

        Args:
            iterator: of torch's DataLoader.
            batch: what it handed over.
            first: whether it is the first of an epoch.
            began_ns: when it was asked.
            ended_ns: when it answered.
            frame: who asked.
        """
        if not self._is_here():
            return
        self._take_deferred(began_ns, frame)
        self._segment_from(began_ns).loader_ns += ended_ns - began_ns
        in_window = self.window.phase == "recording"
        self._batches += 1
        counts = in_window or self._batches <= COUNTED_BATCHES or self._batches % COUNT_EVERY == 0
        found = describe(batch) if counts else Batch()
        place = self.measured.place(self.user_code.innermost(frame))
        self.measured.rows["loader_waits"].append(
            (
                self.done,
                began_ns,
                ended_ns - began_ns,
                iterator._num_workers,
                first,
                iterator._pin_memory,
                found.samples,
                found.positions,
                found.padding,
                found.trimmable,
                place,
            ),
            keep=in_window,
        )
        self._waits_since_backward += 1
        self._fetched_with_grad = torch.is_grad_enabled()

    @guarded
    def went_backward(self, began_ns: int, ended_ns: int, frame: FrameType | None) -> None:
        """An outermost backward pass has returned."""
        if not self._is_here():
            return
        segment = self._segment_from(began_ns)
        segment.backward_ns += ended_ns - began_ns
        segment.backward_calls += 1
        self._span(BACKWARD, began_ns, ended_ns, self.user_code.innermost(frame))
        if self._waits_since_backward:
            # The batch before a backward pass is one that is trained on, whatever came before it.
            self._trains_on_batches_without_grad |= not self._fetched_with_grad
            self._waits_per_backward.append(self._waits_since_backward)
        self._waits_since_backward = 0
        self._take_deferred(ended_ns, frame)

    @guarded
    def collected_garbage(self, began_ns: int, ended_ns: int, generation: int) -> None:
        """Python's garbage collector has run."""
        if self._claimed and not self._acting:
            self.measured.rows["gc_pauses"].append(
                (self.done, began_ns, ended_ns - began_ns, generation), keep=self.window.phase == "recording"
            )

    @guarded
    def used_autocast(self, device_type: str, dtype: str) -> None:
        """Autocast was switched on."""
        self.sessions.autocast_seen = f"{device_type} {dtype}"

    @guarded
    def foreign_profiler_starts(self) -> None:
        """The job prepares a profiler of its own."""
        self.sessions.give_way(self.done)

    @guarded
    def finish(self, how: str) -> None:
        """The process ends; called once or more."""
        if os.getpid() != self._pid or not self._claimed:
            return
        if self._is_here():
            self.sessions.finish(how, self.done)
        self.folder.status.steps = self.done
        self.sessions.write()

    def fail(self, reason: str) -> None:
        """Give the recording up and say why; the job goes on."""
        self.off = True
        try:
            self.sessions.abandon()
        except Exception:
            reason += f"\nand then, while it was being stopped:\n{traceback.format_exc()}"
        self.folder.tell_failure(f"slipstream's own recording failed; the job went on without it:\n{reason}")

    def forget(self) -> None:
        """Start anew, in a process that was just forked off."""
        endings.forget()
        self.__init__(self.job)  # type: ignore[misc]

    def _is_here(self) -> bool:
        """Whether this is the training thread: the one that was first seen to train."""
        ident = threading.get_ident()
        if self._thread is None:
            self._thread = ident
        return self._thread == ident

    def _segment_from(self, began_ns: int) -> Segment:
        if self._segment is None:
            self._segment = Segment(began_ns)  # the first sign of training
        return self._segment

    def _span(self, phase: int, began_ns: int, ended_ns: int, place: Place | None) -> None:
        self.measured.span(self.done, phase, began_ns, ended_ns, place, keep=self.window.phase == "recording")

    def _take_deferred(self, now_ns: int, frame: FrameType | None) -> None:
        """Optimizers that stepped inside a backward pass have their turn once it has returned."""
        if not self._deferred or inside_backward():
            return
        optimizers, self._deferred = self._deferred, []
        segment = self._segment_from(now_ns)
        segment.end_ns = now_ns
        rest = [Segment(now_ns) for _ in optimizers[1:]]
        self._segment = Segment(now_ns)
        self._take_turns(list(zip(optimizers, [segment, *rest], strict=True)), frame)

    def _take_turns(self, stepped: list[tuple[int, Segment]], frame: FrameType | None) -> None:
        before = self.done
        closed = redefined = False
        for optimizer, segment in stepped:
            change = self._turns.stepped(optimizer, segment)
            if change.undo:
                self.done -= 1
                self._durations.pop()
                self.measured.undo_step()
            redefined |= change.redefined
            for group in change.closed:
                self._close(joined(group))
                closed = True
        if redefined:
            self.sessions.restart(self.done)
        if closed and (self.done > before or not self._claimed):
            self._boundary(frame)

    def _close(self, whole: Segment) -> None:
        resident, on_device = self._memory.read(whole.end_ns)
        phase = _PHASES.get(self.window.phase, WARMUP)
        self.measured.step(self.done, whole, phase, resident, on_device)
        if phase == RECORDED:
            self.sessions.recorded_ns.append(whole.end_ns - whole.start_ns)
        if self._watcher is not None:
            self._watcher.step(whole.end_ns - whole.start_ns, disturbed=phase in (RECORDED, PLACES))
        self._durations.append(whole.end_ns - whole.start_ns)
        self.done += 1

    def _boundary(self, frame: FrameType | None) -> None:
        began_ns = monotonic_ns()
        self._acting = True
        acted = not self._claimed
        if not self._claimed:
            self._claim()
            if self.off:
                return  # another process records for this rank
        self._look_again()
        before = self.window.phase
        action = self.window.boundary(self.done, list(self._durations))
        self.folder.status.steps = self.done
        self.sessions.act(action, self.done, frame)
        if self.window.phase != "recording" and began_ns - self.sessions.last_written_ns > WRITE_EVERY_NS:
            self.sessions.write()
            acted = True
        if (acted or action != "none") and self._segment is not None:
            # What the recording itself took belongs to no step.
            self._segment.start_ns = monotonic_ns()
            self.folder.status.overhead_ns += self._segment.start_ns - began_ns
            if self._watcher is not None:
                self._watcher.cost(self._segment.start_ns - began_ns)
        if self._watcher is not None and self.window.phase == "over" != before:
            self._watcher.closed()
        self._acting = False

    def _look_again(self) -> None:
        """In a long training: whether another window is due."""
        if self._watcher is None or self.window.phase != "over" or self.window.ended:
            return
        reason = self._watcher.due(self._requests.new())
        if reason is not None:
            self.sessions.reason = reason
            self.window.reopen()

    def _claim(self) -> None:
        self._claimed = True
        if not self.folder.claim():
            self.off = True
            return
        self.folder.status.user_package = self.user_code.package
        self.folder.tell("warming_up")
        endings.before_the_end(self.finish)
