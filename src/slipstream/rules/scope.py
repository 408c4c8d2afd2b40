"""What a rule judges: the window of the recording, and whether a device or the main thread did the work."""

from typing import cast

import msgspec

from slipstream.model import NotEnoughData
from slipstream.store import Tables

GPUS = frozenset({"cuda", "rocm", "xpu", "mps"})


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The window, typed."""

    start_ns: int
    end_ns: int
    steps: int | None
    on_device: bool
    main_thread: int | None
    busy_ns: int | None
    """None: the device's work is missing from the file."""
    worker: str
    """What does the work, for sentences: GPU, device or main thread."""

    @property
    def length_ns(self) -> int:
        """Length of the window in ns."""
        return self.end_ns - self.start_ns

    def share(self, ns: int) -> float:
        """A time as a share of the window, 0..1."""
        return ns / self.length_ns if self.length_ns else 0.0


def scope_of(tables: Tables) -> Scope:
    """The window of a recording."""
    row = tables.row("window")
    on_device = bool(row["on_device"])
    device = "GPU" if tables.source.device_kind in GPUS else "device"
    return Scope(
        start_ns=cast(int, row["start_ns"]),
        end_ns=cast(int, row["end_ns"]),
        steps=cast("int | None", row["steps"]),
        on_device=on_device,
        main_thread=cast("int | None", row["main_thread"]),
        busy_ns=cast("int | None", row["busy_ns"]),
        worker=device if on_device else "main thread",
    )


def device_scope(tables: Tables) -> Scope:
    """The window, for a rule that only makes sense where a device did the work.

    Raises:
        NotEnoughData: there is no device, or what it did is not in the file.
    """
    scope = scope_of(tables)
    if not scope.on_device:
        if tables.source.device_kind == "cpu":
            raise NotEnoughData("there is no device in this recording")
        raise NotEnoughData(
            "no device work in this recording: where there is a device, record with its activity as well "
            "(ProfilerActivity.CUDA)"
        )
    if scope.busy_ns is None:
        raise NotEnoughData("the device's work is missing from this recording, so its idle time is unknown")
    return scope
