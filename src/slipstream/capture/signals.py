"""Signals between whoever started slipstream and the job: passed on once, and the job's end repeated as it was."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import NoReturn

_PASSED_ON = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
)
_BY_THE_KERNEL = 0
"""``si_code`` is above this for what the kernel sends: a terminal's Ctrl-C has reached the job by itself."""
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)
"""Ignored by this interpreter, but not by who started it."""
_POLL_SECONDS = 0.5


def run_to_the_end(command: Sequence[str], environment: Mapping[str, str], on_pause: Callable[[], None]) -> int:
    """Start a process, pass signals on to it and wait for its end.

    The process gets this one's standard streams, open files and signal settings, as if it had been started in its
    place. Signals that the terminal sends to the whole group are not sent a second time.

    Args:
        command: program (a path) and arguments.
        environment: all environment variables.
        on_pause: called about twice a second.
    Returns:
        Exit status, negative for a signal.
    """
    if not hasattr(signal, "sigtimedwait"):
        return _run_with_handlers(command, environment, on_pause)
    awaited = _PASSED_ON | {signal.SIGCHLD}
    # Blocked signals wait for sigtimedwait: no handler, no race with the start of the job.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        pid = os.posix_spawn(command[0], list(command), dict(environment), setsigmask=before, setsigdef=_RESET)
        return _wait(pid, awaited, on_pause)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(pid: int, awaited: frozenset[signal.Signals], on_pause: Callable[[], None]) -> int:
    while True:
        arrived = signal.sigtimedwait(awaited, _POLL_SECONDS)
        if arrived is not None and arrived.si_signo in _PASSED_ON and arrived.si_code <= _BY_THE_KERNEL:
            os.kill(pid, arrived.si_signo)  # still ours to wait for, so the number cannot be another process'
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        on_pause()


def _run_with_handlers(command: Sequence[str], environment: Mapping[str, str], on_pause: Callable[[], None]) -> int:
    """The same where signals cannot be waited for (macOS): handlers pass them on.

    Who sent a signal is not told here, so that SIGINT is left to the terminal, which sends it to the job as well.
    """
    pid = os.posix_spawn(command[0], list(command), dict(environment), setsigdef=_RESET)

    def pass_on(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            os.kill(pid, number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            on_pause()
            time.sleep(_POLL_SECONDS / 5)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_like(returncode: int) -> NoReturn:
    """End this process as the job ended.

    Args:
        returncode: exit status; negative: number of the signal that the job died of.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if returncode >= 0:
        sys.exit(returncode)
    number = -returncode
    # The job has left its core dump, if any; one of the launcher would only overwrite it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # only a signal that kills can have ended the job; be safe all the same
