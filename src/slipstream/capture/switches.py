"""State of the process that changes how fast it trains."""

import gc
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from slipstream.capture.devices import cpuinfo, cuda_in_use, device_in_use
from slipstream.capture.line_tracing import other_tracer

_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "CUDA_LAUNCH_BLOCKING",
    "HIP_LAUNCH_BLOCKING",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "TORCH_SHOW_CPP_STACKTRACES",
    "TORCH_DISTRIBUTED_DEBUG",
    "TORCHDYNAMO_DISABLE",
    "NVIDIA_TF32_OVERRIDE",
    "LD_PRELOAD",
)
_UNITS_16BIT = ("amx_bf16", "amx_fp16", "avx512_bf16", "avx512_fp16", "avx_ne_convert", "bf16", "svebf16")
"""CPU flags that say that 16-bit floating point is computed rather than converted (x86, Arm)."""

Reader = Callable[[], object]


def read_switches(autocast_seen: str | None) -> dict[str, str | None]:
    """All switches by name; None: could not be read in this version or on this platform.

    Args:
        autocast_seen: types that autocast was seen to use during training steps; None: it was not seen.
    """
    found: dict[str, str | None] = {}
    for name, reader in _readers().items():
        try:
            found[name] = _text(reader())
        except (AttributeError, RuntimeError, OSError, ValueError, StopIteration):
            found[name] = None  # another version of torch, or another platform
    found["autocast"] = autocast_seen or "off"
    found.update((name, os.environ[name]) for name in _VARIABLES if name in os.environ)
    return found


def _readers() -> Mapping[str, Reader]:
    readers: dict[str, Reader] = {
        "torch_threads": torch.get_num_threads,
        "interop_threads": torch.get_num_interop_threads,
        "allowed_cores": lambda: len(os.sched_getaffinity(0)),
        "cpu_quota_cores": _quota,
        "host_memory_bytes": _host_memory,
        "anomaly_mode": torch.is_anomaly_enabled,
        "matmul_precision": torch.get_float32_matmul_precision,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "default_dtype": torch.get_default_dtype,
        "cpu_capability": torch.backends.cpu.get_cpu_capability,
        "cpu_16bit_units": _units_16bit,
        "tracer": lambda: other_tracer() or "none",
        "profile_function": _profile_function,
        "gc_enabled": gc.isenabled,
        "device": _device,
    }
    if cuda_in_use():
        readers |= _device_readers()
    return readers


def _device_readers() -> dict[str, Reader]:
    return {
        "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
        "cudnn_deterministic": lambda: torch.backends.cudnn.deterministic,
        "cudnn_allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
        "matmul_allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
        "flash_sdp": torch.backends.cuda.flash_sdp_enabled,
        "devices": torch.cuda.device_count,
        "device_capability": lambda: "{}.{}".format(*torch.cuda.get_device_capability()),
        "device_memory_bytes": lambda: torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory,
    }


def _device() -> str | None:
    return device_in_use()[0]


def _units_16bit() -> str | None:
    flags = cpuinfo("flags") or cpuinfo("Features")
    return None if flags is None else " ".join(unit for unit in _UNITS_16BIT if unit in flags.split())


def _quota() -> str | None:
    quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
    return "none" if quota == "max" else f"{int(quota) / int(period):g}"


def _host_memory() -> int:
    """Memory that this process may use: the machine's, or less where its group has a limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
    except OSError:
        return total
    return total if limit == "max" else min(total, int(limit))


def _profile_function() -> str:
    function: Any = sys.getprofile()
    return "none" if function is None else getattr(function, "__module__", None) or type(function).__module__


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "on" if value else "off"
    return None if value is None else str(value)
