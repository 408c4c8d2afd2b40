"""What devices can do at most: data rows with source, in ``hardware_peaks.csv``; an unknown device has none.

Figures are dense (no sparsity), in 10^12 operations and 10^9 bytes per second.
"""

import csv
import functools
import re
from importlib import resources

import msgspec

_VENDOR = re.compile(r"^(nvidia|amd|intel|tesla|geforce|instinct)\s+", re.I)
_VIRTUAL = re.compile(r"\s+vf$", re.I)


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """Peaks of one device; None: the source does not tell, or the device has no such units."""

    device: str
    bf16_tflops: float | None
    fp16_tflops: float | None
    tf32_tflops: float | None
    fp32_tflops: float | None
    hbm_gbps: float | None
    """Memory bandwidth."""
    achievable_bf16_share: float | None
    """Share of the 16-bit peak that the best matrix multiplication seen in public reaches, 0..1."""
    source: str


def peaks_of(device: str | None) -> Peaks | None:
    """The row of a device.

    Args:
        device: name as the vendor's driver gives it. Case, spacing, the vendor's name and the mark of a whole card
            handed to a virtual machine ("VF") do not matter; everything else does, since variants differ.
    Returns:
        None for a device that is not in the table, or for a part of one (MIG): never a similar one.
    """
    return None if device is None else _rows().get(normalised(device))


def normalised(device: str) -> str:
    """A device's name without what does not matter in it; rows of devices are looked up by it."""
    name = re.sub(r"\((r|tm)\)|[®™]", "", device, flags=re.I)
    name = re.sub(r"[\s_-]+", " ", name).strip()
    name = _VIRTUAL.sub("", name)
    shorter = _VENDOR.sub("", name)
    while shorter != name:
        name, shorter = shorter, _VENDOR.sub("", shorter)
    return name.casefold()


@functools.cache
def _rows() -> dict[str, Peaks]:
    text = resources.files("slipstream.model").joinpath("hardware_peaks.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    cleaned = ({key: value or None for key, value in row.items()} for row in rows)
    found = (msgspec.convert(row, Peaks, strict=False) for row in cleaned)
    return {normalised(row.device): row for row in found}
