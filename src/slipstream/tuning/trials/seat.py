"""One process of a trial as its launcher sees it: started, given the turn, heard, ended."""

import os
import select
import time
from pathlib import Path

import msgspec

from slipstream.capture.clock import monotonic_ns
from slipstream.capture.foreign_load import resident_bytes
from slipstream.capture.job import JobSpec
from slipstream.tuning.applying import Proved
from slipstream.tuning.child import Child
from slipstream.tuning.environment import Environment
from slipstream.tuning.trials import inside
from slipstream.tuning.trials.messages import Done, Go, Order, Over, Report, Stop, Warm, Wish
from slipstream.tuning.trials.plan import Protocol
from slipstream.tuning.trials.results import Outcome, ProcessResult, Turn, Warmup

_LOOK_S = 0.1
_ORDER_TO_END_S = 30.0
"""What a process is given to end after it was told that nothing more is wanted."""


class Seat:
    """A process of one arm. Between its turns it is stopped, with its workers.

    Args:
        arm: name of the arm.
        repetition: number of the repetition.
        job: with the arm's treatments.
        folder: of this process alone; made anew.
        environment: see ``Child``.
        protocol: how it is measured.
        seed: of this repetition.
    Raises:
        BadInput: there is no such treatment or setting.
        OSError: the folder cannot be written, or the process not started.
    """

    def __init__(
        self,
        arm: str,
        repetition: int,
        job: JobSpec,
        folder: Path,
        environment: Environment,
        protocol: Protocol,
        seed: int,
    ) -> None:
        self.arm = arm
        self.outcome: Outcome = "measured"
        self.turns: list[Turn] = []
        self._repetition = repetition
        self._protocol = protocol
        self._reason: str | None = None
        self._exit_status: int | None = None
        self._warmup: Warmup | None = None
        self._proofs: tuple[Proved, ...] = ()
        folder = folder.absolute()
        folder.mkdir(parents=True)
        reports, orders = folder / "reports", folder / "orders"
        os.mkfifo(reports)
        os.mkfifo(orders)
        wish = Wish(seed=seed, warmup_steps=protocol.warmup_steps, reports=str(reports), orders=str(orders))
        (folder / inside.FILE).write_bytes(msgspec.json.encode(wish))
        self._reports = os.open(reports, os.O_RDONLY | os.O_NONBLOCK)
        self._orders = os.open(orders, os.O_RDWR)  # for reading as well: opening then does not wait for the process
        self._rest = b""
        self._began_ns = monotonic_ns()
        try:
            self._child = Child(job, folder, (inside.PART,), environment)
        except BaseException:
            self._close()
            raise

    @property
    def runs(self) -> bool:
        """Whether it still takes turns."""
        return self.outcome == "measured"

    @property
    def step_ns(self) -> float | None:
        """Middle of the steps of the second half of its warm-up; None: there are none."""
        steps = self._warmup.step_ns if self._warmup is not None else ()
        late = sorted(steps[len(steps) // 2 :])
        return late[len(late) // 2] if late else None

    def warm_up(self) -> Warmup | None:
        """Wait for the end of its warm-up, and stop it there; None where it did not get so far."""
        report = self._hear(self._protocol.start_timeout_s, "its warm-up")
        if not isinstance(report, Warm):
            return None
        self._proofs = report.proofs
        self._warmup = Warmup(
            wall_ns=report.at_ns - self._began_ns,
            step_ns=report.step_ns,
            resident_bytes=_resident(self._child.pid),
            device_bytes=report.device_bytes,
            device_free_bytes=report.device_free_bytes,
        )
        self._child.pause()
        return self._warmup

    def take_turn(self, steps: int) -> Turn | None:
        """Let it do some steps; None where it ended, failed or hung instead."""
        self._child.go_on()
        self._tell(Go(steps=steps))
        report = self._hear(self._protocol.step_timeout_s, f"a turn of {steps} steps")
        if not isinstance(report, Done):
            return None
        self._child.pause()
        return report.turn

    def dismiss(self) -> ProcessResult:
        """End it, and say what became of it."""
        if self.runs:
            self._child.go_on()
            self._tell(Stop())
            self._last_report()
            self._child.wait(_ORDER_TO_END_S)
        self._child.end()
        self._close()
        return ProcessResult(
            arm=self.arm,
            repetition=self._repetition,
            outcome=self.outcome,
            reason=self._reason,
            exit_status=self._exit_status,
            warmup=self._warmup,
            turns=tuple(self.turns),
            proofs=self._proofs,
        )

    def abandon(self) -> None:
        """End it by force, with nothing to say."""
        self._child.end()
        self._close()

    def _last_report(self) -> None:
        deadline = time.monotonic() + _ORDER_TO_END_S
        while time.monotonic() < deadline:
            report = self._next_report(deadline)
            if report is None:
                return
            if isinstance(report, Over):
                self._proofs = report.proofs or self._proofs
                return

    def _hear(self, timeout_s: float, doing: str) -> Report | None:
        """The next report, None where the process has ended or hangs; ``outcome`` then says which."""
        deadline = time.monotonic() + timeout_s
        report = self._next_report(deadline)
        if isinstance(report, Over):
            self._proofs = report.proofs or self._proofs
            self._child.wait(_ORDER_TO_END_S)
            self._ended(report.steps)
        elif report is None and self._child.poll() is not None:
            self._ended(0)
        elif report is None:
            self.outcome, self._reason = "hung", f"it did not end {doing} within {timeout_s:.0f} s"
        return report

    def _ended(self, steps: int) -> None:
        """The process came to its end before all was measured."""
        self._exit_status = self._child.poll()
        if self._exit_status:
            words = self._child.last_words()
            self.outcome = "failed"
            self._reason = f"it ended with status {self._exit_status}" + (f":\n{words}" if words else "")
        elif not steps:
            self.outcome, self._reason = "no_steps", "it ended without a step of an optimizer"
        else:
            self.outcome, self._reason = "too_few_steps", f"it ended after {steps} steps"

    def _next_report(self, deadline: float) -> Report | None:
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._reports], [], [], _LOOK_S)
            more = os.read(self._reports, 65_536) if ready else b""
            self._rest += more
            if more:
                continue
            if self._child.poll() is not None and not self._left_over():
                return None
            if time.monotonic() > deadline:
                return None
            if ready:
                time.sleep(_LOOK_S)  # nobody has the other end open: select would return at once
        text, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(text, type=Report)

    def _left_over(self) -> bool:
        """Whether a process that has ended left something in the pipe."""
        try:
            more = os.read(self._reports, 65_536)
        except BlockingIOError:
            return False
        self._rest += more
        return bool(more)

    def _tell(self, order: Order) -> None:
        os.write(self._orders, msgspec.json.encode(order) + b"\n")

    def _close(self) -> None:
        os.close(self._reports)
        os.close(self._orders)


def _resident(pid: int) -> int:
    """Memory that a process and its workers hold; 0 for one that has just ended."""
    try:
        return resident_bytes(pid)
    except ProcessLookupError:
        return 0
