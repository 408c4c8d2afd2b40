"""What one multiprocessor of a device can hold: data rows with source, in ``device_limits.csv``."""

import csv
import functools
from importlib import resources

import msgspec

from slipstream.model.peaks import normalised


class DeviceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one device; None: the source does not tell."""

    device: str
    multiprocessors: int
    """streaming multiprocessors or compute units"""
    threads: int | None
    """threads that one of them holds"""
    blocks: int | None
    """blocks that one of them holds"""
    registers: int | None
    """32-bit registers of one of them"""
    shared_bytes: int | None
    """shared memory of one of them"""
    reserved_shared_bytes: int | None
    """shared memory that the system takes of it for each block"""
    warp: int
    """threads that run in step"""
    source: str


def limits_of(device: str | None) -> DeviceLimits | None:
    """The row of a device; None for a device that is not in the table, never a similar one.

    Args:
        device: name as the vendor's driver gives it; what may differ in it is told by ``peaks_of``.
    """
    return None if device is None else _rows().get(normalised(device))


@functools.cache
def _rows() -> dict[str, DeviceLimits]:
    text = resources.files("slipstream.model").joinpath("device_limits.csv").read_text(encoding="utf-8")
    cleaned = ({key: value or None for key, value in row.items()} for row in csv.DictReader(text.splitlines()))
    found = (msgspec.convert(row, DeviceLimits, strict=False) for row in cleaned)
    return {normalised(row.device): row for row in found}
