"""Memory of this process and its device, read often enough to see growth and seldom enough to cost nothing."""

import os

import psutil
import torch

INTERVAL_NS = 100_000_000

_STATM = "/proc/self/statm"


class MemoryReader:
    """Reads at most every 100 ms."""

    def __init__(self) -> None:
        self._next_ns = 0
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._process = None if os.path.exists(_STATM) else psutil.Process()

    def read(self, now_ns: int) -> tuple[int | None, int | None]:
        """Resident bytes, and bytes allocated on the device; None where it is not time yet, or no device."""
        if now_ns < self._next_ns:
            return None, None
        self._next_ns = now_ns + INTERVAL_NS
        # The allocator's own count: asking for it does not wait for the device.
        device = torch.cuda.memory_allocated() if torch.cuda.is_initialized() else None
        return self._resident(), device

    def _resident(self) -> int:
        if self._process is not None:
            return int(self._process.memory_info().rss)
        with open(_STATM, "rb") as file:
            return int(file.read().split()[1]) * self._page
