"""Memory of this process and its device, read often enough to see growth and seldom enough to cost nothing."""

import os
from pathlib import Path

import psutil
import torch

from slipstream.capture.devices import cuda_in_use

INTERVAL_NS = 100_000_000

_STATM = Path("/proc/self/statm")


class MemoryReader:
    """Reads at most every 100 ms."""

    def __init__(self) -> None:
        self._next_ns = 0
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._process = None if _STATM.exists() else psutil.Process()

    def read(self, now_ns: int) -> tuple[int | None, int | None]:
        """Resident bytes, and bytes allocated on the device; None where it is not time yet, or no device."""
        if now_ns < self._next_ns:
            return None, None
        self._next_ns = now_ns + INTERVAL_NS
        # The allocator's own count: asking for it does not wait for the device.
        device = torch.cuda.memory_allocated() if cuda_in_use() else None
        return self._resident(), device

    def _resident(self) -> int:
        if self._process is not None:
            return int(self._process.memory_info().rss)
        return int(_STATM.read_bytes().split()[1]) * self._page
