"""The ways in which a job's process can end, so that what was measured is written first.

Not covered, since nothing can run any more: ``os._exit`` and SIGKILL. What was written when the window closed, and
from time to time after that, stays.
"""

import atexit
import multiprocessing
import multiprocessing.util
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_DEADLY = (signal.SIGTERM, signal.SIGHUP)


def before_the_end(finish: Callable[[str], None]) -> None:
    """Have a function called when this process ends.

    Args:
        finish: told how the process ends; may be called more than once.
    """
    if multiprocessing.parent_process() is None:
        atexit.register(finish, "the job ended")
    else:
        # multiprocessing's children leave by os._exit; only its own finalizers run.
        multiprocessing.util.Finalize(None, finish, args=("the job's process ended",), exitpriority=100)
    if threading.current_thread() is threading.main_thread():
        for number in _DEADLY:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _Last(finish))


class _Last:
    """Handler in place of the default action: finishes, then lets the default action happen."""

    def __init__(self, finish: Callable[[str], None]) -> None:
        self._finish = finish
        self._pid = os.getpid()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == self._pid:
            self._finish(f"the job was ended by {signal.Signals(number).name}")
        os.kill(os.getpid(), number)


def forget() -> None:
    """Put the default actions back, in a process that was forked off."""
    for number in _DEADLY:
        if isinstance(signal.getsignal(number), _Last):
            signal.signal(number, signal.SIG_DFL)
