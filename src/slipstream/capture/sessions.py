"""Carries out what the window decides: starts, marks, stops and writes the two recordings."""

import statistics
from types import FrameType

from slipstream.capture.archive import Archive
from slipstream.capture.clock import epoch_offset_ns, monotonic_ns
from slipstream.capture.devices import device_in_use
from slipstream.capture.kineto import Recording, foreign_is_running, inside_backward
from slipstream.capture.line_tracing import LineTracer, line_tracer, other_tracer
from slipstream.capture.measurements import Measurements
from slipstream.capture.rank_folder import RankFolder
from slipstream.capture.switches import read_switches
from slipstream.capture.user_code import UserCode
from slipstream.capture.watching import Reason
from slipstream.capture.window import Action, Window

OWN_PROFILER = "the job runs a profiler of its own, which has precedence: analyse the trace that it exports"


class Sessions:
    """The recordings of one training process; all calls come from the training thread, between steps.

    Args:
        window: decides.
        folder: takes what is recorded.
        measured: is written along.
        user_code: whose lines are traced.
        archive: keeps earlier windows; None: a later one takes the place of an earlier one.
    """

    def __init__(
        self,
        window: Window,
        folder: RankFolder,
        measured: Measurements,
        user_code: UserCode,
        archive: Archive | None = None,
    ) -> None:
        self.reason: Reason = "first"
        """Why the window that is open, or opens next, was wanted."""
        self.recorded_ns: list[int] = []
        """Times of the steps recorded in it."""
        self._archive = archive
        self.window = window
        self.epoch_offset_ns = epoch_offset_ns()
        self.autocast_seen: str | None = None
        self._folder = folder
        self._measured = measured
        self._user_code = user_code
        self._recording: Recording | None = None
        self._tracer: LineTracer | None = None
        self._switches: dict[str, str | None] = {}
        self._started = False
        self.last_written_ns = monotonic_ns()

    def act(self, action: Action, number: int, frame: FrameType | None) -> None:
        """Do what the window decided.

        Args:
            action: its decision.
            number: the step that begins now.
            frame: innermost frame of the training thread outside slipstream.
        """
        if action == "prepare":
            self._prepare()
        elif action == "open":
            self._open(number, frame)
        elif action == "mark" and self._recording is not None:
            self._recording.mark(number)
        elif action in ("close", "close_for_places"):
            self._close("complete", f"{self.window.recorded} steps recorded", None)
            if action == "close_for_places":
                self._begin_places(number, frame)
        elif action == "begin_places":
            self._begin_places(number, frame)
        elif action == "end_places":
            self._end_places()

    def interrupt(self, number: int) -> None:
        """Something else than training begins, within step ``number``: an evaluation."""
        if self.window.phase == "places":
            self.window.interrupt(number)
            self._discard()
        elif self.window.phase == "recording":
            if self.window.interrupt(number) == "keep":
                text = f"{self.window.recorded} of {self.window.steps} steps recorded, then an evaluation began"
                self._close("complete", text, number)
            else:
                self._discard()
                self._folder.note("an evaluation began inside the window; it was opened again later")

    def restart(self, number: int) -> None:
        """From step ``number`` on steps are something else than before: a recording of both would mislead."""
        if self.window.phase in ("warmup", "prepared", "recording"):
            self._discard()
            self.window.restart(number)

    def give_way(self, number: int) -> None:
        """The job starts a profiler of its own, within step ``number``."""
        phase = self.window.phase
        if phase == "over":
            return
        recorded = self.window.recorded if phase == "recording" else 0
        self.window.give_up()
        if phase == "places":
            self._end_places()
        elif recorded and not self.window.again:
            self._close("complete", f"{recorded} steps recorded, then the job started a profiler of its own", number)
        else:
            self._discard()
            if not self.window.again:
                self._folder.tell("over", "own_profiler", OWN_PROFILER)

    def finish(self, how: str, number: int) -> None:
        """The process ends, within step ``number``; ``how`` begins a sentence that says why."""
        phase = self.window.phase
        self.window.give_up()
        if phase == "places":
            self._end_places()
        elif phase == "recording":
            recorded = self.window.recorded
            told = f"{how} when {recorded} of {self.window.steps} steps had been recorded"
            if inside_backward():
                self._folder.tell("over", "cut_short", f"{told}, inside a backward pass: the recording is lost")
            elif recorded and not self.window.again:
                self._close("cut_short", told, number)
            else:
                self._discard()
                if not self.window.again:
                    self._folder.tell("over", "cut_short", told)
        elif phase in ("warmup", "prepared") and not self.window.again:
            self._folder.tell("over", "too_few_steps", f"{how} after {number} steps, before the window opened")

    def write(self) -> None:
        """Write the measured tables and the status."""
        if not self._switches:
            self._read_state()
        self._folder.write(self._measured, self._switches, self.epoch_offset_ns)
        self._folder.tell()
        self.last_written_ns = monotonic_ns()

    def abandon(self) -> None:
        """Stop whatever runs and keep nothing of it, after a failure."""
        self.window.give_up()
        if self._tracer is not None:
            self._tracer.end()
        if self._recording is not None and self._started:
            self._recording.stop()
        self._recording = None

    def _prepare(self) -> None:
        if foreign_is_running():
            self.give_way(0)
            return
        self._recording = Recording(everything=True)
        self._recording.prepare()

    def _open(self, number: int, frame: FrameType | None) -> None:
        if self._recording is None:
            return
        if not self._recording.with_stack:
            self._folder.note(
                "Python calls were not recorded: another profiling function is installed (sys.setprofile)"
            )
        self._read_state()
        if self._archive is not None:
            self._archive.put_away(self._folder.path)
        self.recorded_ns = []
        self._folder.status.first_recorded = number
        self._folder.tell("recording")
        self.epoch_offset_ns = epoch_offset_ns()
        running = [(user_frame.f_code, user_frame.f_lineno) for user_frame in self._user_code.frames(frame)]
        self._recording.start(running)
        self._started = True
        self._recording.mark(number)

    def _read_state(self) -> None:
        self._switches = read_switches(self.autocast_seen)
        self._folder.status.device, self._folder.status.device_kind = device_in_use()

    def _close(self, code: str, told: str, unfinished: int | None) -> None:
        recording, self._recording = self._recording, None
        if recording is None:
            return
        self._started = False
        recording.stop()
        recording.export(self._folder.path / "trace.json.gz", unfinished)
        self._folder.status.recorded = self.window.recorded
        if self._archive is not None and self._folder.status.first_recorded is not None:
            middle = round(statistics.median(self.recorded_ns)) if self.recorded_ns else None
            self._archive.note(self._folder.path, self._folder.status.first_recorded, self.reason, middle)
        self._folder.tell("over", "cut_short" if code == "cut_short" else "complete", told)
        self.write()

    def _discard(self) -> None:
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer.end()
        recording, self._recording = self._recording, None
        if recording is not None:
            if not self._started:
                recording.start()  # a recording that was prepared must be started to be stopped
            self._started = False
            recording.stop()

    def _begin_places(self, number: int, frame: FrameType | None) -> None:
        other = other_tracer()
        if other is not None:
            self._folder.note(f"lines were not traced: {other} already traces this process")
            self.window.give_up()
            return
        self._folder.tell("tracing_lines")
        self._tracer = line_tracer(self._user_code)
        self._recording = Recording(everything=False)
        self._recording.prepare()
        self._recording.start()
        self._started = True
        self._recording.mark(number)
        self._tracer.begin(frame)

    def _end_places(self) -> None:
        tracer, self._tracer = self._tracer, None
        recording, self._recording = self._recording, None
        if tracer is None or recording is None:
            return
        tracer.end()
        self._started = False
        recording.stop()
        recording.export(self._folder.path / "places.json.gz", None)
        self._folder.write_lines(tracer)
        if tracer.full:
            self._folder.note("the traced step ran too many lines: places of its later ops are missing")
        self._folder.tell("over")
