"""Facts of the machine and the installation that a run folder keeps."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path

import psutil


def host_facts() -> dict[str, str | int | float | None]:
    """The machine: processor, cores, memory, platform."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": psutil.virtual_memory().total,
        "platform": platform.platform(),
    }


def library_names(without: str | None = None) -> list[str]:
    """Top-level import names of everything installed, except what is installed as an editable project.

    An editable project is what somebody works on: for places in the user's code it counts as theirs.

    Args:
        without: one more name to leave out, or None.
    """
    names: set[str] = {"slipstream"}
    for distribution in importlib.metadata.distributions():
        if not _is_editable(distribution):
            names.update(_top_levels(distribution))
    return sorted(names - {without})


def _is_editable(distribution: importlib.metadata.Distribution) -> bool:
    text = distribution.read_text("direct_url.json")
    return bool(text and json.loads(text).get("dir_info", {}).get("editable"))


def _top_levels(distribution: importlib.metadata.Distribution) -> Iterable[str]:
    told = (distribution.read_text("top_level.txt") or "").split()
    if told:
        return told
    firsts = {file.parts[0] for file in distribution.files or () if len(file.parts) > 1 or file.suffix == ".py"}
    return {first.removesuffix(".py") for first in firsts if first.removesuffix(".py").isidentifier()}


def _cpu() -> str | None:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            found = next((line for line in lines if line.startswith("model name")), "")
    except OSError:
        found = ""
    return found.partition(":")[2].strip() or platform.processor() or None
