"""How much memory a job used at most, and how much there is."""

import re
from typing import cast

import msgspec
import polars as pl

from slipstream.model import NotEnoughData
from slipstream.rules.scope import Scope
from slipstream.store import Tables

DEVICE_TYPE_CPU = 0
_GB_OF_NAME = re.compile(r"(?<![\d.])(\d+) ?GB\b")


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of the device (without one: of the machine), in bytes."""

    peak_bytes: int
    capacity_bytes: int
    where: str
    """What the memory belongs to, for sentences."""

    @property
    def share(self) -> float:
        """Part of the memory in use at the peak, 0..1."""
        return self.peak_bytes / self.capacity_bytes


def room_of(tables: Tables, scope: Scope) -> Room:
    """Peak and capacity.

    On a device the peak is what the allocator had reserved at most while recording; without one it is the resident
    memory of the process at the ends of steps.

    Raises:
        NotEnoughData: one of the two was not recorded.
    """
    return _of_device(tables) if scope.on_device else _of_host(tables)


def switches_of(tables: Tables) -> dict[str, str | None]:
    """The switches of a live capture by name; none for other recordings."""
    if not tables.trace.has("switches"):
        return {}
    return dict(tables["switches"].select("name", "value").iter_rows())


def _of_device(tables: Tables) -> Room:
    rows = tables["memory"].filter(pl.col("device_type") != DEVICE_TYPE_CPU)
    if not rows.height:
        raise NotEnoughData("allocations of the device are not in this recording: record with profile_memory=True")
    sums = rows.group_by("device").agg(
        pl.max_horizontal(pl.col("reserved_bytes").max(), pl.col("allocated_bytes").max())
    )
    peak = cast("int | None", sums["reserved_bytes"].max())
    if not peak:
        raise NotEnoughData("totals of the allocator are not in this recording: record with a newer PyTorch")
    capacity = switches_of(tables).get("device_memory_bytes") or _by_name(tables.source.device)
    if capacity is None:
        raise NotEnoughData("how much memory the device has is not known: record with `slipstream run`")
    return Room(peak_bytes=int(peak), capacity_bytes=int(capacity), where="the device")


def _by_name(device: str | None) -> int | None:
    """The size that a device carries in its name; the true one is up to 2 % below."""
    size = _GB_OF_NAME.search(device or "")
    return int(size[1]) << 30 if size else None


def _of_host(tables: Tables) -> Room:
    if not tables.trace.has("job_steps"):
        raise NotEnoughData("memory of the process is not in this recording: record with `slipstream run`")
    peak = cast("int | None", tables["job_steps"]["rss_bytes"].max())
    capacity = switches_of(tables).get("host_memory_bytes")
    if peak is None or capacity is None:
        raise NotEnoughData("memory of the process or of the machine could not be read when this was recorded")
    return Room(peak_bytes=peak, capacity_bytes=int(capacity), where="the machine")
