"""MEM003: the device is busy but not full, and memory is free: a larger batch would fit."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.memory.room import room_of
from slipstream.rules.rule import Rule
from slipstream.rules.scope import device_scope
from slipstream.rules.wording import percent, size
from slipstream.store import Tables

FREE_SHARE = 0.6
"""Memory in use from which on twice the batch may not fit."""
BUSY_SHARE = 0.8
"""Below this something else holds the device up, and a larger batch is no answer to it."""
FULL_SHARE = 0.9
"""Multiprocessors with work from which on a kernel counts as filling the device."""
SNIPPET = """\
loader = DataLoader(dataset, batch_size=2 * batch_size)    # per sample it may take less time
# more samples a step: tune the learning rate and its schedule anew, and compare a validation metric"""


class RoomForLargerBatch(Rule):
    """Room for a larger batch.

    What it detects
    A device that is busy for 80 % of the time and more, whose kernels leave multiprocessors without any block, while
    less than 60 % of the memory is in use. Counted is the share of each kernel's time that its idle multiprocessors
    are of all.

    Why it costs time
    A kernel with fewer blocks than the device has multiprocessors takes as long for half the work. With more samples
    in a batch the same kernels fill the device, and a sample takes less time.

    Fix
    A larger batch, or a larger micro-batch with fewer accumulation steps, which leaves the step's samples as they
    are. Compare the time per sample.

    When not to
    Where a loader, launches or synchronisation hold the device up: then it is idle, and they come first. A larger
    batch changes what is learnt: learning rate and schedule have to follow, and very large ones generalise worse.

    Source
    NVIDIA Deep Learning Performance Guide, "GPU performance background" (waves and tails).
    """

    code = "MEM003"
    name = "room for a larger batch"
    needs: ClassVar = {"window": (), "device_work": (), "occupancy": ("sm_share",)}
    fix_class = "semantic"
    treatment = "larger_batch"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Busy, but not full, with memory left."""
        scope = device_scope(tables)
        if scope.busy_ns is None:
            raise NotEnoughData("how busy the device was is not in this recording")
        rows = tables["occupancy"].filter(pl.col("sm_share").is_not_null())
        thin = rows.filter(pl.col("sm_share") < FULL_SHARE)
        idle_parts = thin.with_columns(idle_ns=((1 - pl.col("sm_share")) * pl.col("sum_ns")).round().cast(pl.Int64))
        empty = int(idle_parts["idle_ns"].sum())
        if not empty:
            return []
        told = f"kernels leave {percent(scope.share(empty))} of the multiprocessors' time without work"
        busy = scope.share(scope.busy_ns)
        if busy < BUSY_SHARE:
            return [
                self.dismissal(
                    f"{told}, but the {scope.worker} is busy {percent(busy)} of the time only: idle comes first"
                )
            ]
        room = room_of(tables, scope)
        if room.share >= FREE_SHARE:
            return [self.dismissal(f"{told}, and {percent(room.share)} of the memory of {room.where} is in use")]
        worst = idle_parts.with_columns(pl.col("name").cast(pl.String)).sort(
            "idle_ns", "name", descending=[True, False]
        )
        return [
            self.finding(
                title=f"The {scope.worker} is busy but not full: {told}, and only {size(room.peak_bytes)} of "
                f"{size(room.capacity_bytes)} of memory are in use: a larger batch would fit",
                cost_ns=empty,
                steps=scope.steps,
                evidence=(
                    Evidence(
                        event=row["name"],
                        ts_ns=scope.start_ns,
                        dur_ns=row["sum_ns"],
                        note=f"{percent(row['sm_share'])} of the multiprocessors have work, all {row['count']} calls",
                    )
                    for row in worst.head(3).iter_rows(named=True)
                ),
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """More samples at once."""
        return Fix(
            summary="Try a larger batch, or larger micro-batches with fewer accumulation steps, and compare the time "
            "per sample. Learning rate and schedule have to follow a larger batch.",
            snippet=SNIPPET,
            needs_consent=True,
        )
