"""What of this machine and its settings makes training slow or its recording incomplete."""

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from slipstream import __version__
from slipstream.cli import probe

State = Literal["ok", "look", "cannot tell"]

OLDEST_TORCH, TESTED_TORCH = (2, 9), (2, 13)
PROBE_SECONDS = 120
"""A first import of PyTorch from a cold network disk takes a minute."""
SHM_BYTES = 1 << 30
"""Shared memory below which loader workers are known to die of it; containers often have 64 MiB."""
COMPANIONS = ("transformers", "accelerate", "lightning", "torchvision", "datasets")

SWITCHES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "CUDA_LAUNCH_BLOCKING": (("1",), "every kernel launch waits for its kernel"),
    "HIP_LAUNCH_BLOCKING": (("1",), "every kernel launch waits for its kernel"),
    "AMD_SERIALIZE_KERNEL": (("1", "2", "3"), "kernels run one after the other"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (("1",), "every tensor asks the driver for memory"),
    "TORCH_SHOW_CPP_STACKTRACES": (("1",), "errors collect C++ stacks, which makes caught ones slow"),
    "TORCH_DISTRIBUTED_DEBUG": (("DETAIL",), "collectives are checked across ranks"),
    "NCCL_DEBUG": (("INFO", "TRACE"), "the communication library logs"),
    "TORCH_COMPILE_DEBUG": (("1",), "the compiler writes all it does to disk"),
    "TORCHDYNAMO_DISABLE": (("1",), "torch.compile does nothing"),
    "NVIDIA_TF32_OVERRIDE": (("0",), "TF32 is off for every library"),
    "PYTHONDEVMODE": (("1",), "Python's development mode checks memory and warnings"),
    "PYTHONTRACEMALLOC": (("1",), "every allocation of Python keeps its traceback"),
    "PYTHONASYNCIODEBUG": (("1",), "asyncio checks every call"),
}
"""Debug switches of the environment: values that turn them on, and what they cost."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    state: State
    why: str


def checks(environ: Mapping[str, str]) -> list[Check]:
    """Look at everything.

    Args:
        environ: the environment that a training job would inherit.
    """
    facts, trouble = ask_torch(environ)
    found = [*_versions(facts, trouble), *_devices(facts), _compiler(environ)]
    return [*found, *_threads(facts, environ, allowed_cores()), *_switches(environ), _shared_memory()]


def ask_torch(environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """What PyTorch says of itself in a process of its own, or why it says nothing.

    Args:
        environ: environment of that process.
    """
    # -P: the folder of a script must not shadow modules that torch imports.
    command = [sys.executable, "-P", str(Path(probe.__file__))]
    try:
        run = subprocess.run(
            command, env=dict(environ), capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {}, f"importing torch did not end within {PROBE_SECONDS} s"
    if run.returncode == 0:
        facts: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
        return facts, ""
    lines = run.stderr.strip().splitlines()
    return {}, lines[-1] if lines else f"importing torch ended the process with status {run.returncode}"


def allowed_cores() -> float:
    """Cores this process may use: its affinity, less where a control group grants less time."""
    cores: float = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else min(cores, int(quota) / int(period))


def _versions(facts: Mapping[str, Any], trouble: str) -> Iterator[Check]:
    yield Check(name="python", state="ok", why=f"{platform.python_version()} at {sys.executable}")
    yield Check(name="slipstream", state="ok", why=__version__)
    if facts:
        build = f"CUDA {facts['cuda']}" if facts["cuda"] else f"ROCm {facts['hip']}" if facts["hip"] else "CPU only"
        yield _torch(facts["torch"], build)
    elif "ModuleNotFoundError" in trouble and "torch" in trouble:
        why = "not installed for this Python: traces can be analysed, jobs cannot be run (pip install torch)"
        yield Check(name="torch", state="look", why=why)
    else:
        yield Check(name="torch", state="look", why=f"cannot be imported: {trouble}")
    for package in COMPANIONS:
        try:
            yield Check(name=package, state="ok", why=importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            continue


def _torch(version: str, build: str) -> Check:
    told = f"{version}, built for {build}"
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None:
        return Check(name="torch", state="cannot tell", why=f"{told}: not a version that can be compared")
    number = (int(numbers.group(1)), int(numbers.group(2)))
    if number < OLDEST_TORCH:
        return Check(name="torch", state="look", why=f"{told}: recording needs {_dotted(OLDEST_TORCH)} or newer")
    newer = f"; newer than {_dotted(TESTED_TORCH)}, which was tested" if number > TESTED_TORCH else ""
    return Check(name="torch", state="ok", why=told + newer)


def _dotted(number: tuple[int, int]) -> str:
    return f"{number[0]}.{number[1]}"


def _devices(facts: Mapping[str, Any]) -> Iterator[Check]:
    if not facts:
        yield Check(name="device", state="cannot tell", why="torch cannot be asked")
        return
    if facts["devices"]:
        yield Check(name="device", state="ok", why=", ".join(facts["devices"]))
    elif facts["cuda"] or facts["hip"]:
        yield Check(
            name="device", state="look", why="torch is built for a GPU but sees none: driver, or container flags"
        )
    else:
        yield Check(name="device", state="ok", why=f"CPU: {platform.processor() or platform.machine()}")
    if facts["kernels_recorded"] is True:
        yield Check(name="kernel tracing", state="ok", why="a test kernel appeared in a recording")
    elif facts["kernels_recorded"] is False:
        why = (
            "a test kernel ran but was not recorded: another profiler holds the device, or the driver allows it to "
            "administrators only (NVreg_RestrictProfilingToAdminUsers=0, in containers --cap-add SYS_ADMIN)"
        )
        yield Check(name="kernel tracing", state="look", why=why)


def _compiler(environ: Mapping[str, str]) -> Check:
    wanted = [environ["CXX"]] if environ.get("CXX") else ["g++", "clang++", "c++"]
    for name in wanted:
        path = shutil.which(name, path=environ.get("PATH"))
        if path:
            return Check(name="compiler", state="ok", why=f"{path}, which torch.compile needs on the CPU")
    return Check(name="compiler", state="look", why=f"no {' or '.join(wanted)}: torch.compile cannot work on the CPU")


def _threads(facts: Mapping[str, Any], environ: Mapping[str, str], cores: float) -> Iterator[Check]:
    threads = facts.get("threads")
    if threads is None:
        yield Check(name="threads", state="cannot tell", why=f"{cores:g} cores allowed; torch cannot be asked")
    elif threads > cores:
        why = f"torch uses {threads} threads on {cores:g} allowed cores: set OMP_NUM_THREADS={max(int(cores), 1)}"
        yield Check(name="threads", state="look", why=why)
    elif threads == 1 and cores >= 2:
        why = f"torch uses 1 thread of {cores:g} allowed cores; launchers set OMP_NUM_THREADS=1 by themselves"
        yield Check(name="threads", state="look", why=why)
    else:
        yield Check(name="threads", state="ok", why=f"torch uses {threads} threads on {cores:g} allowed cores")
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "KMP_AFFINITY", "OMP_WAIT_POLICY")
    given = [f"{name}={environ[name]}" for name in names if name in environ]
    if given:
        yield Check(name="thread settings", state="ok", why=" ".join(given))


def _switches(environ: Mapping[str, str]) -> Iterator[Check]:
    on = [name for name, (values, _) in SWITCHES.items() if environ.get(name, "").upper() in values]
    for name in on:
        yield Check(name=name, state="look", why=f"{environ[name]}: {SWITCHES[name][1]}")
    if not on:
        yield Check(
            name="debug switches", state="ok", why=f"none of {len(SWITCHES)} known ones is on in the environment"
        )
    why = "set inside a script, so seen only while it runs: `slipstream run` records it"
    yield Check(name="anomaly mode", state="cannot tell", why=why)


def _shared_memory() -> Check:
    try:
        size = shutil.disk_usage("/dev/shm").total
    except OSError:
        return Check(name="/dev/shm", state="cannot tell", why="not there: not Linux, or not mounted")
    told = f"{size / (1 << 30):.3g} GiB"
    if size < SHM_BYTES:
        why = f"{told}: loader workers pass batches through it and die when it is full (docker run --shm-size=8g)"
        return Check(name="/dev/shm", state="look", why=why)
    return Check(name="/dev/shm", state="ok", why=told)
