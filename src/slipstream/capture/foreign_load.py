"""How much of the machine's processors is used by others than this process and its descendants."""

import os
import time

import psutil


class ForeignLoad:
    """Looks at the machine from time to time.

    The counters of the machine advance in ticks of 10 ms: spans below half a second tell little.
    """

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._at = self._read()

    def cores(self) -> float:
        """Cores that others used, on average since the last look; at least 0.

        What descendants used that ended meanwhile without having been waited for by a process that still runs counts
        as used by others.
        """
        before, self._at = self._at, self._read()
        seconds, busy, own = (after - earlier for after, earlier in zip(self._at, before, strict=True))
        return max(0.0, (busy - own) / seconds) if seconds > 0 else 0.0

    def _read(self) -> tuple[float, float, float]:
        """Seconds: of the clock, that all processors were busy, that this process and its descendants were."""
        machine = psutil.cpu_times()
        busy = machine.user + machine.system
        for name in ("nice", "irq", "softirq", "steal"):
            busy += getattr(machine, name, 0.0)
        own = 0.0
        for process in [self._me, *self._me.children(recursive=True)]:
            try:
                used = process.cpu_times()
            except psutil.Error:
                continue  # it has just ended
            own += used.user + used.system + used.children_user + used.children_system
        return time.monotonic(), busy, own


def available_bytes() -> int:
    """Memory that new processes can have without anything being swapped out."""
    return int(psutil.virtual_memory().available)


def resident_bytes(pid: int) -> int:
    """Memory that a process and its descendants hold; what they share is counted for each.

    Raises:
        ProcessLookupError: the process has ended.
    """
    try:
        process = psutil.Process(pid)
        return sum(int(one.memory_info().rss) for one in [process, *process.children(recursive=True)])
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(str(error)) from error


def cores_allowed() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
