"""What the machine offers to a job: what treatments look at to tell whether they apply."""

import ctypes.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from slipstream.model import CannotStart, DeviceKind
from slipstream.tuning import probe

PROBE_SECONDS = 120
"""A first import of PyTorch from a cold network disk takes a minute."""
_ALLOCATORS = {"tcmalloc": ("tcmalloc_minimal", "tcmalloc"), "jemalloc": ("jemalloc",), "mimalloc": ("mimalloc",)}
_OPENMP = {"iomp": ("iomp5",)}


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a job finds on this machine."""

    torch_version: tuple[int, int]
    device_kind: DeviceKind
    device: str | None = None
    """Name of the first device; None: CPU only."""
    compute_capability: tuple[int, int] | None = None
    """Of a CUDA device."""
    cpu_flags: frozenset[str] = frozenset()
    """What Linux says the processor can do; empty: not known."""
    cores_allowed: int
    compiler: bool = False
    """Whether there is a C++ compiler, which torch.compile needs on the CPU."""
    libraries: dict[str, str] = {}
    """Files of libraries that can be preloaded: ``tcmalloc``, ``jemalloc``, ``mimalloc``, ``iomp``."""
    variables: dict[str, str] = {}
    """Environment variables that the job inherits."""
    platform: str = sys.platform


def look_around(variables: Mapping[str, str] = os.environ) -> Environment:
    """Ask PyTorch, in a process of its own, and the machine.

    Args:
        variables: what a job would inherit.
    Raises:
        CannotStart: PyTorch is missing or cannot be asked.
    """
    # -P: the working directory must not shadow modules that torch imports.
    command = [sys.executable, "-P", str(Path(probe.__file__))]
    try:
        run = subprocess.run(
            command, env=dict(variables), capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CannotStart(f"importing torch did not end within {PROBE_SECONDS} s") from error
    if run.returncode:
        last = (run.stderr.strip().splitlines() or [f"it ended with status {run.returncode}"])[-1]
        raise CannotStart(f"PyTorch cannot be asked what it can do ({last}): see slipstream doctor")
    told = msgspec.json.decode(run.stdout.splitlines()[-1], type=_Told)
    return Environment(
        torch_version=told.torch_version,
        device_kind=told.device_kind,
        device=told.device,
        compute_capability=told.compute_capability,
        cpu_flags=_cpu_flags(),
        cores_allowed=cores_allowed(),
        compiler=any(shutil.which(name) for name in _compilers(variables)),
        libraries=_libraries(),
        variables=dict(variables),
    )


class _Told(msgspec.Struct, frozen=True):
    torch_version: tuple[int, int]
    device_kind: DeviceKind
    device: str | None
    compute_capability: tuple[int, int] | None


def cores_allowed() -> int:
    """Cores that this process and its children may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compilers(variables: Mapping[str, str]) -> tuple[str, ...]:
    return (variables["CXX"],) if variables.get("CXX") else ("g++", "clang++", "c++")


def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    found = next((line for line in lines if line.partition(":")[0].strip() in ("flags", "Features")), "")
    return frozenset(found.partition(":")[2].split())


def _libraries() -> dict[str, str]:
    found = {}
    for name, files in (_ALLOCATORS | _OPENMP).items():
        path = next((path for path in map(ctypes.util.find_library, files) if path), None)
        if path is not None:
            found[name] = path
    return found
