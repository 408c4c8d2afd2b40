"""Notes, for the length of one step, when which line of the user's code begins."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from array import array
from types import CodeType, FrameType
from typing import Any

from slipstream.capture.user_code import UserCode

LIMIT = 400_000
"""Line events of one step that are noted at most; a loop in plain Python makes millions."""
RETURNED = -1
_RESUMABLE = 0x20 | 0x80 | 0x100 | 0x200
"""Code flags of generators and coroutines."""


class LineTracer(ABC):
    """Base of both ways to be told of lines.

    Args:
        user_code: whose lines count.
    """

    def __init__(self, user_code: UserCode) -> None:
        self.thread_id = threading.get_native_id()
        self.user_code = user_code
        self.times = array("q")
        """When each event happened, epoch ns: the trace's clock."""
        self.codes: list[CodeType] = []
        self.lines = array("q")
        self.full = False
        """Whether the limit was reached: later lines are missing."""

    def begin(self, frame: FrameType | None) -> None:
        """Start; ``frame`` is the innermost one of the stack as it is."""
        frames = self.user_code.frames(frame)
        for user_frame in frames:
            self.note(user_frame.f_code, user_frame.f_lineno)
        self._start(frames)

    def end(self) -> None:
        """Stop. May be called again."""
        self._stop()

    def note(self, code: CodeType, line: int) -> None:
        """Keep one event."""
        if len(self.times) >= LIMIT:
            if not self.full:
                self.full = True
                self._stop()
            return
        self.times.append(time.time_ns())
        self.codes.append(code)
        self.lines.append(line)

    @abstractmethod
    def _start(self, frames: list[FrameType]) -> None: ...

    @abstractmethod
    def _stop(self) -> None: ...


class SetTraceTracer(LineTracer):
    """By ``sys.settrace``, for Python 3.11."""

    def _start(self, frames: list[FrameType]) -> None:
        self._frames = frames
        for frame in frames:
            frame.f_trace = self._local
        sys.settrace(self._call)

    def _stop(self) -> None:
        if sys.gettrace() == self._call:
            sys.settrace(None)
        for frame in self._frames:
            frame.f_trace = None
        self._frames = []

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not self.user_code.owns(code.co_filename):
            return None
        if code.co_flags & _RESUMABLE and frame.f_lineno != code.co_firstlineno:
            self.note(code, frame.f_lineno)  # it goes on in the middle of a line that is not told again
        return self._local

    def _local(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.note(frame.f_code, frame.f_lineno)
        elif event == "return":
            self.note(frame.f_code, RETURNED)
        return self._local


class MonitoringTracer(LineTracer):
    """By ``sys.monitoring`` (PEP 669), from Python 3.12 on: code that is not the user's runs at full speed."""

    def _start(self, frames: list[FrameType]) -> None:
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self._tool = _free_tool(self._monitoring)
        self._watched: set[CodeType] = set()
        self._ident = threading.get_ident()
        events = self._monitoring.events
        self._monitoring.use_tool_id(self._tool, "slipstream")
        for event, callback in (
            (events.PY_START, self._entered),
            (events.PY_RESUME, self._resumed),
            (events.LINE, self._line),
            (events.PY_RETURN, self._left),
            (events.PY_YIELD, self._left),
            (events.PY_UNWIND, self._unwound),
        ):
            self._monitoring.register_callback(self._tool, event, callback)
        for frame in frames:
            self._watch(frame.f_code)
        self._monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME | events.PY_UNWIND)

    def _stop(self) -> None:
        if self._tool is None:
            return
        self._monitoring.set_events(self._tool, 0)
        for code in self._watched:
            self._monitoring.set_local_events(self._tool, code, 0)
        self._monitoring.free_tool_id(self._tool)
        self._monitoring.restart_events()  # what was disabled must not stay so for the tool's next owner
        self._tool = None

    def _watch(self, code: CodeType) -> None:
        if code not in self._watched:
            self._watched.add(code)
            events = self._monitoring.events
            self._monitoring.set_local_events(self._tool, code, events.LINE | events.PY_RETURN | events.PY_YIELD)

    def _here(self) -> bool:
        return threading.get_ident() == self._ident

    def _entered(self, code: CodeType, offset: int) -> Any:
        if not self.user_code.owns(code.co_filename):
            return self._monitoring.DISABLE
        self._watch(code)
        return None

    def _resumed(self, code: CodeType, offset: int) -> Any:
        if not self.user_code.owns(code.co_filename):
            return self._monitoring.DISABLE
        self._watch(code)
        if self._here():
            self.note(code, sys._getframe(1).f_lineno)
        return None

    def _line(self, code: CodeType, line: int) -> Any:
        if self._here():
            self.note(code, line)
        return None

    def _left(self, code: CodeType, offset: int, value: object) -> Any:
        if self._here():
            self.note(code, RETURNED)
        return None

    def _unwound(self, code: CodeType, offset: int, exception: BaseException) -> Any:
        if self._here() and code in self._watched:
            self.note(code, RETURNED)
        return None


def _free_tool(monitoring: Any) -> int | None:
    # 0 to 2 and 5 are meant for debuggers, coverage, profilers and optimizers.
    return next((tool for tool in (3, 4, 2, 5) if monitoring.get_tool(tool) is None), None)


def other_tracer() -> str | None:
    """What already traces this thread (a debugger, coverage), or None: it wins."""
    tracer = sys.gettrace()
    if tracer is not None:
        return getattr(tracer, "__module__", None) or type(tracer).__module__
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None:
        for tool in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID):
            name = monitoring.get_tool(tool)
            if name is not None:
                return str(name)
        if _free_tool(monitoring) is None:
            return "other monitoring tools"
    return None


def line_tracer(user_code: UserCode) -> LineTracer:
    """The way of this Python version."""
    return MonitoringTracer(user_code) if sys.version_info >= (3, 12) else SetTraceTracer(user_code)
