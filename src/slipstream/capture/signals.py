"""Signals between whoever started slipstream and the job: passed on once, and the job's end repeated as it was."""

import os
import resource
import signal
import sys
from typing import NoReturn


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
    os._exit(128 + number)  # a signal that does not kill by default cannot have ended the job; be safe all the same
