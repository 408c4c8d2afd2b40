"""What a file says about itself: the top-level values beside its events."""

import json
import re
from typing import Any

import msgspec
import polars as pl

from slipstream.ingest.ledger import Ledger
from slipstream.model import DeviceKind

_WANTED = (
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "traceName",
    "metadata",
    "torch_version",
    "pytorch_version",
)
_STDLIB = json.JSONDecoder()
"""Only where the values around the events are damaged: it can read one value out of the middle of a text."""

NVIDIA = re.compile(
    r"nvidia|tesla|geforce|quadro|\btitan\b|\b(?:[ABHLTVP]\d{1,3}|GB\d{3}|GH\d{3}|B[23]00|RTX ?\w*|GTX ?\w*)\b",
    re.IGNORECASE,
)
AMD = re.compile(r"\bamd\b|instinct|radeon|\bmi\d{2,3}|\bgfx\d", re.IGNORECASE)
OTHERS: tuple[tuple[re.Pattern[str], DeviceKind], ...] = (
    (re.compile(r"mtia|artemis", re.IGNORECASE), "mtia"),
    (re.compile(r"ascend|\bnpu\b", re.IGNORECASE), "npu"),
    (re.compile(r"\bintel\b.*(?:gpu|max|arc|flex|graphics)|data center gpu max|\bxpu\b", re.IGNORECASE), "xpu"),
    (re.compile(r"\bapple\b|\bmps\b", re.IGNORECASE), "mps"),
)
ROW_WORDS: tuple[tuple[str, DeviceKind], ...] = (
    ("mtia_", "mtia"),
    ("xpu_", "xpu"),
    ("npu", "npu"),
    ("hip_", "rocm"),
    ("mps_", "mps"),
)
"""Beginnings of categories that only one vendor's devices have."""


def top_level(header: bytes, tail: bytes, ledger: Ledger) -> dict[str, Any]:
    """The top-level values other than the events.

    Args:
        header: text up to the opening bracket of the events (only that bracket for a bare array).
        tail: text from the closing bracket on; empty for a cut file.
    """
    if header == b"[":
        return {}
    text = header + (tail or b"]}")
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        ledger.note("damaged_description", 1, "The values around the events are damaged: read one by one.")
        return _one_by_one(text.decode(errors="replace"))
    return values if isinstance(values, dict) else {}


def _one_by_one(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in _WANTED:
        for match in re.finditer(rf'"{key}"\s*:\s*', text):
            try:
                found[key] = _STDLIB.raw_decode(text, match.end())[0]
            except (json.JSONDecodeError, RecursionError):
                continue
    return found


def whole_number(value: object) -> int | None:
    """A count that may be written as text; None for anything else."""
    try:
        return int(value) if isinstance(value, int | str | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None


def ranks(values: dict[str, Any]) -> tuple[int | None, int | None]:
    """Rank and world size by ``distributedInfo``."""
    info = values.get("distributedInfo")
    if not isinstance(info, dict):
        return None, None
    rank, size = whole_number(info.get("rank")), whole_number(info.get("world_size"))
    return (rank if rank is not None and rank >= 0 else None), (size if size is not None and size > 0 else None)


def torch_version(values: dict[str, Any]) -> str | None:
    """Version of PyTorch, where the file tells it."""
    for key in ("torch_version", "pytorch_version"):
        if isinstance(values.get(key), str):
            return str(values[key])
    return None


def device_name(values: dict[str, Any], used: int | None) -> str | None:
    """The vendor's name of the device that was used.

    Args:
        values: top-level values.
        used: ordinal of the device most rows are on; None when there are no rows.
    """
    properties = values.get("deviceProperties")
    listed = [entry for entry in properties if isinstance(entry, dict)] if isinstance(properties, list) else []
    named = [entry for entry in listed if isinstance(entry.get("name"), str) and entry["name"].strip()]
    mine = [entry for entry in named if whole_number(entry.get("id")) == used]
    chosen = mine or named
    return str(chosen[0]["name"]).strip() if chosen else None


def device_kind(
    values: dict[str, Any], name: str | None, categories: set[str], calls: pl.Series, has_device: bool
) -> DeviceKind:
    """What kind of device did the work.

    Args:
        values: top-level values.
        name: the vendor's name of the device, if known.
        categories: every category in the file.
        calls: names of runtime calls.
        has_device: whether there are rows on a device.
    """
    if name is not None:
        if AMD.search(name):
            return "rocm"
        for pattern, kind in OTHERS:
            if pattern.search(name):
                return kind
        if NVIDIA.search(name):
            return "cuda"
    keys = " ".join(values)
    if "roctracer" in keys or "rocprof" in keys or "hip_runtime" in keys:
        return "rocm"
    for word, kind in ROW_WORDS:
        if any(category.startswith(word) for category in categories):
            return kind
    if calls.str.starts_with("hip").any():
        return "rocm"
    if calls.str.starts_with("cu").any() or "cupti_version" in keys or "cuda_" in keys:
        return "cuda"
    if has_device:
        return "unknown"
    return "unknown" if values.get("deviceProperties") else "cpu"
