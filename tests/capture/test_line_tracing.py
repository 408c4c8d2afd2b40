"""Lines of the user's code, by the way of this Python version. The traced functions come first: lines are counted."""

import sys
import textwrap
import threading
from collections.abc import Iterator

from slipstream.capture.line_tracing import RETURNED, line_tracer, other_tracer
from slipstream.capture.user_code import UserCode


def inner(x: int) -> int:
    x += 1
    return x


def generator() -> Iterator[int]:
    yield 1
    yield 2


def fails() -> None:
    raise ValueError


def outer() -> None:
    a = inner(1)
    for _ in generator():
        a += 1
    try:
        fails()
    except ValueError:
        a = 0
    textwrap.dedent(" a")  # the standard library: not traced


def traced() -> list[tuple[str, int]]:
    tracer = line_tracer(UserCode(None, None))
    tracer.begin(sys._getframe())
    outer()
    tracer.end()
    inner(5)  # no longer traced
    assert list(tracer.times) == sorted(tracer.times)
    assert tracer.thread_id == threading.get_native_id()
    return [
        (code.co_name, line - (code.co_firstlineno if line > 0 else 0))
        for code, line in zip(tracer.codes, tracer.lines, strict=True)
    ]


def test_lines_calls_and_returns_in_their_order() -> None:
    events = traced()
    events = events[events.index(("outer", 1)) :]
    # A resumed generator tells its current line anew; after a return the caller's line is active again.
    seen = [event for place, event in enumerate(events) if place == 0 or event != events[place - 1]]
    assert [event for event in seen if event[0] != "traced"] == [
        ("outer", 1),
        ("inner", 1),
        ("inner", 2),
        ("inner", RETURNED),
        ("outer", 2),
        ("generator", 1),
        ("generator", RETURNED),
        ("outer", 3),
        ("outer", 2),
        ("generator", 1),
        ("generator", 2),
        ("generator", RETURNED),
        ("outer", 3),
        ("outer", 2),
        ("generator", 2),
        ("generator", RETURNED),
        ("outer", 4),
        ("outer", 5),
        ("fails", 1),
        ("fails", RETURNED),
        ("outer", 6),
        ("outer", 7),
        ("outer", 8),
        ("outer", RETURNED),
    ]


def test_running_functions_come_first_and_go_on() -> None:
    events = traced()
    names = [name for name, _ in events]
    assert names.index("test_running_functions_come_first_and_go_on") < names.index("traced") < names.index("outer")
    assert events[-1][0] == "traced"


def test_nothing_is_left_behind() -> None:
    traced()
    assert sys.gettrace() is None
    assert sys._getframe().f_trace is None
    assert other_tracer() is None


def test_a_debugger_is_seen() -> None:
    def debugger(frame: object, event: str, argument: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        assert other_tracer() == __name__
    finally:
        sys.settrace(before)


def test_endless_loops_do_not_fill_the_memory() -> None:
    import slipstream.capture.line_tracing as module

    limit, module.LIMIT = module.LIMIT, 50
    try:
        tracer = line_tracer(UserCode(None, None))
        tracer.begin(sys._getframe())
        total = 0
        for number in range(1000):
            total += number
        assert sys.gettrace() is None
        tracer.end()
    finally:
        module.LIMIT = limit
    assert tracer.full
    assert len(tracer.times) == 50
