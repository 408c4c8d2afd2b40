"""CMP004: elementwise kernels walk over strided tensors number by number."""

from typing import ClassVar, cast

import msgspec
import numpy as np
import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.model.peaks import peaks_of
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.products import ELEMENT_BYTES, shapes
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import window_ops
from slipstream.rules.wording import duration, per_step, percent, size
from slipstream.store import Tables

STRIDED = r"(^|[^_a-z])elementwise_kernel<"
"""The general kernel; ``vectorized_`` and ``unrolled_`` ones have other names."""
LARGE_BYTES = 1_000_000
"""Kernels that move less are dominated by their fixed cost."""
MEMORY_SHARE = 0.8
"""Share of the memory's peak that a vectorised kernel reaches."""
SNIPPET = """\
scores = scores.contiguous()                 # once, before several elementwise ops on a transposed tensor
bias = bias.expand_as(x)                     # a broadcast over the last dimension is cheap, one over the first is not
mask = mask.to(memory_format=torch.channels_last)   # all inputs of an op in one layout"""


class StridedElementwiseKernels(Rule):
    """Strided, non-vectorised elementwise kernels.

    What it detects
    Elementwise ops other than copies that ran in the general kernel (`elementwise_kernel`, not `vectorized_...`) on
    1 MB and more, and how much longer they took than their bytes need at 80 % of the memory's peak. No more counts
    than the host waits for the device.

    Why it costs time
    On contiguous tensors of one layout the kernel loads 16 bytes at a time. Where an input is transposed, sliced or
    broadcast, or inputs differ in layout, it computes the address of every number and loads them one by one.

    Fix
    Bring inputs into one contiguous layout before several such ops (not before a single one: the copy costs as
    much); choose layouts so that broadcasting runs along the last dimension; or compile, which fuses the ops and
    walks in the best order.

    When not to
    For a single op a copy into contiguous memory costs as much as it saves. Bytes are counted from shapes, so a
    broadcast input that is read once counts once.

    Source
    PyTorch documentation, "Tensor views" (contiguous versus non-contiguous); implementation notes of TensorIterator.
    """

    code = "CMP004"
    name = "strided elementwise kernels"
    needs: ClassVar = {"window": (), "ops": ("input_dims", "input_types"), "device_work": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare general elementwise kernels with the memory's rate."""
        scope = device_scope(tables)
        rows = _kernels(tables, scope)
        if not rows.height:
            return []
        peaks = peaks_of(tables.source.device)
        if peaks is None or peaks.hbm_gbps is None:
            raise NotEnoughData(
                f"the memory bandwidth of {tables.source.device or 'this device'} is not in the hardware table"
            )
        floor = (pl.col("moved_bytes") / (peaks.hbm_gbps * MEMORY_SHARE)).round().cast(pl.Int64)
        rows = rows.with_columns(floor_ns=floor).with_columns(
            cost_ns=(pl.col("dur_ns") - pl.col("floor_ns")).clip(lower_bound=0)
        )
        cost, waits = int(rows["cost_ns"].sum()), host_waits_ns(tables, scope)
        if waits is not None and waits < cost:
            rows = rows.with_columns(cost_ns=(pl.col("cost_ns") * (waits / cost)).round().cast(pl.Int64))
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{per_step(rows.height, scope.steps, 'general elementwise kernel')}, at the rate of the memory or "
                    "faster than the host launches"
                )
            ]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """One layout."""
        return Fix(
            summary="Bring the inputs into one contiguous layout before several elementwise ops on them, or compile, "
            "which fuses the ops. Not for a single op, where the copy costs as much as it saves.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        return self.finding(
            title=f"Elementwise ops on strided tensors take {percent(scope.share(place.cost_ns))} of the time longer "
            f"than their bytes need ({duration(place.cost_ns)} in "
            f"{per_step(place.rows.height, scope.steps, 'kernel')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["op"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{size(row['moved_bytes'])}, which take {duration(row['floor_ns'])} at the memory's rate",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _kernels(tables: Tables, scope: Scope) -> pl.DataFrame:
    """General elementwise kernels of large ops, with ``op``, ``moved_bytes`` and the place."""
    work = tables["device_work"].filter(
        (pl.col("kind") == "kernel") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    )
    work = work.with_columns(pl.col("name").cast(pl.String)).filter(pl.col("name").str.contains(STRIDED))
    ops = window_ops(tables, scope).select(
        "file", "line", "function", "precision", "input_dims", "input_types", op_event="event", op="name"
    )
    rows = work.select("event", "name", "ts_ns", "dur_ns", "op_event").join(ops, on="op_event", how="inner")
    rows = rows.filter((pl.col("op") != "aten::copy_") & pl.col("input_types").is_not_null())
    moved = [_moved(dims, types) for dims, types in rows.select("input_dims", "input_types").iter_rows()]
    return rows.with_columns(pl.Series("moved_bytes", moved, dtype=pl.Int64)).filter(
        pl.col("moved_bytes") >= LARGE_BYTES
    )


def _moved(dims: str | None, types: str) -> int:
    """Bytes of all inputs and of a result as large as the largest; 0 where a type is unknown."""
    named = cast("list[str]", msgspec.json.decode(types))
    known = shapes(dims)
    if len(known) != len(named):
        return 0
    inputs = [
        int(np.prod(shape, dtype=np.int64)) * ELEMENT_BYTES[name]
        for shape, name in zip(known, named, strict=True)
        if name in ELEMENT_BYTES
    ]
    return sum(inputs) + max(inputs, default=0)
