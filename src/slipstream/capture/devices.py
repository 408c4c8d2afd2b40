"""Which device the training uses. Asking never wakes one up: a device counts once the job has begun to use it."""

from pathlib import Path
from typing import Any, cast

import torch

_TORCH = cast(Any, torch)  # parts of it carry no types


def cuda_in_use() -> bool:
    """Whether the job has initialised CUDA (or ROCm, which goes by the same name)."""
    return bool(_TORCH.cuda.is_initialized())


def xpu_in_use() -> bool:
    """Whether the job has initialised an XPU."""
    return hasattr(torch, "xpu") and bool(_TORCH.xpu.is_initialized())


def device_in_use() -> tuple[str | None, str]:
    """Name (None: not known) and kind of the current device, else of the CPU."""
    if cuda_in_use():
        return torch.cuda.get_device_name(), "cuda" if torch.version.hip is None else "rocm"
    if xpu_in_use():
        return torch.xpu.get_device_name(), "xpu"
    return cpuinfo("model name"), "cpu"


def cpuinfo(key: str) -> str | None:
    """What Linux says of the first core under a key, or None."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            found = next((line for line in lines if line.partition(":")[0].strip() == key), None)
    except OSError:
        return None
    return found.partition(":")[2].strip() if found else None
