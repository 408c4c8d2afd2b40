"""COM002: many small collectives, each of which costs the same whatever it carries."""

import math
from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.painting import covered
from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.communication.exposure import collectives_of_window
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import LAUNCH, costliest, pace_idle, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

SMALL_BYTES = 1_000_000
"""A message below this is ruled by the fixed cost of a collective, also on fast links."""
SMALL_NS = 100_000
"""Where sizes are not told: a collective this short is ruled by its fixed cost."""
PER_STEP = 20
"""Small collectives per step (in the window, where steps are not known) from which on merging pays."""
BUCKET_BYTES = 25_000_000
"""Size to which DistributedDataParallel merges gradients unless told otherwise."""
ALPHA_QUANTILE = 0.1
"""A small collective that is longer than only this share of them shows the fixed cost, without waiting for others."""
CALL = r"^c10d::"
SNIPPET = """\
model = DistributedDataParallel(model, bucket_cap_mb=25)          # not an all_reduce per parameter by hand

# by hand: one exchange for all
flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
torch.distributed.all_reduce(flat)"""


class ManySmallCollectives(Rule):
    """Many small collectives.

    What it detects
    Twenty and more collectives below 1 MB per step (where sizes are not told: shorter than 0.1 ms), launched from the
    backward pass or one right after the other. Merged into messages of 25 MB nearly all of their fixed cost would go:
    for each the time that the shortest of them take, as far as no computation hides it, and idle time while the host
    was inside the calls that launch them (part of what LCH001 counts).

    Why it costs time
    A collective costs 5 to 50 us before the first byte arrives (more between machines), plus the launch on the host,
    on every rank. Ten values sent one by one take ten times as long as ten values together.

    Fix
    Let DistributedDataParallel merge gradients into buckets, or concatenate what is exchanged by hand; metrics can
    wait until there are several.

    When not to
    Larger messages begin later and overlap less. Exchanges that depend on each other cannot be merged.

    Source
    Hockney's model of a message, time = alpha + bytes x beta; Li et al., "PyTorch Distributed", VLDB 2020 (bucketing).
    """

    code = "COM002"
    name = "many small collectives"
    needs: ClassVar = {"window": (), "device_work": (), "idle_spans": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Count small collectives and what merging them saves."""
        scope = device_scope(tables)
        rows = collectives_of_window(tables, scope)
        small = rows.filter(
            pl.when(pl.col("size_bytes").is_not_null())
            .then(pl.col("size_bytes") < SMALL_BYTES)
            .otherwise(pl.col("dur_ns") < SMALL_NS)
        )
        small = small.filter(_mergeable(tables, scope, small))
        if small.height < PER_STEP * (scope.steps or 1):
            return []
        kept = max(1, math.ceil(int(small["size_bytes"].sum()) / BUCKET_BYTES), scope.steps or 1)
        alpha = float(str(small["dur_ns"].quantile(ALPHA_QUANTILE)))
        share = 1 - kept / small.height
        transfer = pl.min_horizontal("exposed_ns", pl.lit(alpha)) * share
        small = small.with_columns(cost_ns=transfer.round().cast(pl.Int64))
        small = _with_launches(tables, scope, small, share)
        told = f"{per_step(small.height, scope.steps, 'small collective')}"
        if not int(small["cost_ns"].sum()):
            return [self.dismissal(f"{told}, all of them beside computation")]
        return [self._finding(place, scope, told, alpha) for place in by_place(small, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Merge them."""
        return Fix(
            summary="Merge small exchanges: let DistributedDataParallel fill buckets, or concatenate what is exchanged "
            "by hand. Larger messages begin later and overlap less, so compare the step.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope, told: str, alpha: float) -> Finding:
        return self.finding(
            title=f"{told}, {duration(round(alpha))} each at least: {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)}) would go if they were merged{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=costliest(place.rows),
        )


def _mergeable(tables: Tables, scope: Scope, small: pl.DataFrame) -> pl.Series:
    """Whether each was launched from a backward pass, or right before or after another without work in between.

    Others may carry what the next layer needs.
    """
    ops = window_ops(tables, scope)
    nodes = ops.filter(pl.col("name").str.starts_with("autograd::"))["event"]
    kernels = tables["device_work"].filter(pl.col("kind") == "kernel")["launch_ts_ns"].drop_nulls().sort().to_numpy()
    launched = small["launch_ts_ns"]
    order = launched.fill_null(-1).arg_sort()
    before = pl.Series(np.searchsorted(kernels, launched.fill_null(-1).gather(order).to_numpy()))
    same = (before == before.shift(1)).fill_null(False) | (before == before.shift(-1)).fill_null(False)
    burst = pl.DataFrame({"row": order, "burst": same}).sort("row")["burst"] & launched.is_not_null()
    return burst | small["root"].is_in(nodes.implode()).fill_null(False)


def _with_launches(tables: Tables, scope: Scope, small: pl.DataFrame, share: float) -> pl.DataFrame:
    """Add the idle time during the calls that launched them to their cost."""
    ops = window_ops(tables, scope)
    calls = ops.filter(pl.col("name").str.contains(CALL)).select("thread", "ts_ns", "dur_ns", "end_ns")
    if not calls.height:
        return small
    launched = small.with_row_index("row").drop_nulls("launch_ts_ns").sort("launch_ts_ns")
    launched = launched.select("row", "launch_ts_ns")
    mine = launched.join_asof(calls.sort("ts_ns"), left_on="launch_ts_ns", right_on="ts_ns")
    mine = mine.filter(pl.col("launch_ts_ns") < pl.col("end_ns"))
    parts = []
    for (thread,), part in mine.group_by("thread"):
        start = part["ts_ns"].to_numpy()
        idle = covered(pace_idle(tables, thread, LAUNCH), start, part["end_ns"].to_numpy())
        parts.append(part.select("row").with_columns(idle_ns=pl.Series(idle, dtype=pl.Int64)))
    if not parts:
        return small
    waits = pl.concat(parts).unique("row")
    joined = small.with_row_index("row").join(waits, on="row", how="left")
    saved = (pl.col("idle_ns").fill_null(0) * share).round().cast(pl.Int64)
    return joined.with_columns(cost_ns=pl.col("cost_ns") + saved).drop("row")
