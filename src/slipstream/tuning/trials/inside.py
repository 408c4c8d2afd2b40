"""The part that holds a trial's process in its step hook until it has the turn; loaded once torch has been imported.

Time is taken from the moment the turn is handed over to the end of its last step. What the hooks themselves take in
between is subtracted.
"""

import itertools
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import msgspec

from slipstream.capture import endings
from slipstream.capture.clock import monotonic_ns
from slipstream.capture.job import Job
from slipstream.capture.turns import Turns
from slipstream.tuning import applying
from slipstream.tuning.trials.messages import Done, Go, Order, Over, Report, Stop, Warm, Wish
from slipstream.tuning.trials.results import Turn

PART = "slipstream.tuning.trials.inside"
FILE = "trial.json"
_TRAINER = "trainer"
"""File that the process which trains makes; others of the job (workers, ranks) leave the turns to it."""


def install(job: Job) -> None:
    """Seed everything and listen to the training."""
    from slipstream.capture.hooks import watch_training

    folder = Path(job.folder)
    wish = msgspec.json.decode((folder / FILE).read_bytes(), type=Wish)
    seed_all(wish.seed)
    trainee = Trainee(wish, folder)
    watch_training(trainee)
    os.register_at_fork(after_in_child=trainee.forget)


def seed_all(seed: int) -> None:
    """Give python, numpy and torch the same start in every arm. A job that seeds them itself overrides this."""
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


class Trainee:
    """The process that trains, as far as its trial is concerned.

    Args:
        wish: what the trial wants.
        folder: the process' own.
    """

    def __init__(self, wish: Wish, folder: Path) -> None:
        self.off = False
        self.inside_optimizer = False
        self.optimizer_calls = 0
        self._wish = wish
        self._folder = folder
        self._line: Line | None = None
        self._turns: Turns[None] = Turns()
        self._done = 0
        self._warmed_up = False
        self._ends_ns: list[int] = []
        self._ordered = 0
        """Steps that this turn is to have."""
        self._steps = 0
        """Steps that it has had."""
        self._began_ns = self._began_cpu_ns = 0
        self._hooks_ns = 0
        self._samples: int | None = 0
        self._fetched: int | None = None
        self._fetched_anew = False

    def optimizer_stepped(
        self, optimizer: object, began_ns: int, ended_ns: int, frame: FrameType | None, skipped: bool | None
    ) -> None:
        """An optimizer has stepped: perhaps the end of a training step."""
        with self._own_time():
            change = self._turns.stepped(id(optimizer), None)
            before = self._done
            self._done += len(change.closed) - change.undo
            if self._done <= before:
                return
            if self._line is None and not self._claim():
                return
        if self._warmed_up:
            self._steps += 1
            if self._steps >= self._ordered:
                self._hand_on(self._turn_done())
            return
        self._ends_ns.append(ended_ns)
        if self._done >= self._wish.warmup_steps:
            self._warmed_up = True
            self._hand_on(self._warm())

    def fetch_begins(self) -> None:
        """Nothing to do: what a batch holds is known when it has been handed over."""

    def fetched(
        self, iterator: Any, batch: object, first: bool, began_ns: int, ended_ns: int, frame: FrameType | None
    ) -> None:
        """A batch; whether it is trained on shows when a backward pass follows."""
        from slipstream.capture.batches import samples_of

        with self._own_time():
            self._fetched = samples_of(batch)
            self._fetched_anew = True

    def went_backward(self, began_ns: int, ended_ns: int, frame: FrameType | None) -> None:
        """A backward pass: the last batch before it is one that the training learns from."""
        if self._fetched_anew and self._samples is not None:
            self._samples = None if self._fetched is None else self._samples + self._fetched
        self._fetched_anew = False

    def forget(self) -> None:
        """Start anew, in a process that was just forked off: it is no trainer unless it steps an optimizer itself."""
        endings.forget()
        self.__init__(self._wish, self._folder)  # type: ignore[misc]

    def _claim(self) -> bool:
        """Whether this is the process whose steps are timed: the first one that takes any."""
        try:
            os.close(os.open(self._folder / _TRAINER, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            self.off = True
            return False
        self._line = Line(self._wish)
        endings.before_the_end(self._ends)
        return True

    def _hand_on(self, report: Report) -> None:
        """Report, and wait for the turn."""
        assert self._line is not None
        self._line.tell(report)
        order = self._line.ask()
        if isinstance(order, Stop):
            self._leave()
        self._ordered, self._steps, self._samples, self._hooks_ns = order.steps, 0, 0, 0
        self._began_cpu_ns = time.process_time_ns()
        self._began_ns = monotonic_ns()

    def _warm(self) -> Warm:
        _finish_device()
        in_use, free = _device_memory()
        ends = self._ends_ns
        return Warm(
            at_ns=monotonic_ns(),
            step_ns=tuple(after - before for before, after in itertools.pairwise(ends)),
            proofs=applying.proofs(),
            device_bytes=in_use,
            device_free_bytes=free,
        )

    def _turn_done(self) -> Done:
        _finish_device()
        wall_ns = monotonic_ns() - self._began_ns - self._hooks_ns
        cpu_ns = time.process_time_ns() - self._began_cpu_ns
        samples = self._samples or None  # 0: no batch came from a loader of torch
        return Done(turn=Turn(wall_ns=wall_ns, cpu_ns=cpu_ns, steps=self._steps, samples=samples))

    def _leave(self) -> NoReturn:
        self._ends("the trial has what it wants")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)

    def _ends(self, how: str) -> None:
        if self.off or self._line is None:
            return
        self.off = True
        applying.write_proofs(self._folder)
        self._line.tell(Over(steps=self._done, proofs=applying.proofs()))

    @contextmanager
    def _own_time(self) -> Iterator[None]:
        began_ns = monotonic_ns()
        try:
            yield
        finally:
            self._hooks_ns += monotonic_ns() - began_ns


class Line:
    """The process' side of the two named pipes."""

    def __init__(self, wish: Wish) -> None:
        self._reports = os.open(wish.reports, os.O_WRONLY | os.O_CLOEXEC)
        self._orders = os.open(wish.orders, os.O_RDONLY | os.O_CLOEXEC)
        self._rest = b""

    def tell(self, report: Report) -> None:
        """Send a report."""
        text = msgspec.json.encode(report) + b"\n"
        while text:
            text = text[os.write(self._reports, text) :]

    def ask(self) -> Go | Stop:
        """Wait for an order; a launcher that is gone has none."""
        while b"\n" not in self._rest:
            more = os.read(self._orders, 65_536)
            if not more:
                os._exit(1)
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(text, type=Order)


def _finish_device() -> None:
    """Wait until the device has done what the turn gave it."""
    import torch

    from slipstream.capture.devices import cuda_in_use, xpu_in_use

    if cuda_in_use():
        torch.cuda.synchronize()
    elif xpu_in_use():
        torch.xpu.synchronize()


def _device_memory() -> tuple[int | None, int | None]:
    """Bytes reserved by this process, and free bytes of the device; None without a device in use."""
    import torch

    from slipstream.capture.devices import cuda_in_use

    if not cuda_in_use():
        return None, None
    return torch.cuda.max_memory_reserved(), torch.cuda.mem_get_info()[0]
