"""MEM001: memory is asked of the driver and given back in every step."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.analysis.places import Places
from slipstream.forecast import Edit, cut_waits
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PLACE, WORTH_SHARE, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import device_scope
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

STEPS = 2
"""Steps in which it must occur: the first allocations of a size are unavoidable."""
SNIPPET = """\
# no torch.cuda.empty_cache() in the training loop
# shapes that vary from step to step: pad to a few sizes, or let segments grow
#   PYTORCH_ALLOC_CONF=expandable_segments:True python train.py"""


class AllocatorChurn(Rule):
    """Allocator churn.

    What it detects
    Idle time of the device while the host was inside `cudaMalloc`, `cudaFree` and the like, in two steps and more.
    In a single step it may be the first use of a size, which is told but not reported.

    Why it costs time
    PyTorch keeps freed memory and hands it out again without the driver. When the cache is emptied, or no cached
    block fits, it calls the driver, which takes 0.1 to 10 ms; a release even waits until the device has finished
    everything.

    Fix
    Remove `torch.cuda.empty_cache()` from the loop. Where shapes vary, pad them to a few sizes or set
    `expandable_segments:True`, with which the allocator extends blocks instead of asking for new ones. Where memory
    is nearly full, free some: the allocator then gives blocks back to make room for others.

    When not to
    Between phases that need memory in different ways (training and evaluation, or another library on the same
    device) emptying the cache once is right.

    Source
    PyTorch documentation, "CUDA semantics: memory management".
    """

    code = "MEM001"
    name = "allocator churn"
    needs: ClassVar = {"window": (), "idle_spans": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up idle time whose cause is the allocator."""
        scope = device_scope(tables)
        idle = tables["idle_spans"].filter((pl.col("cause") == "allocator") & pl.col("event").is_not_null())
        cost = int(idle["dur_ns"].sum())
        if not cost:
            return []
        calls = idle["event"].n_unique()
        told = f"{per_step(calls, scope.steps, 'call')} of the driver for memory, {duration(cost)} in all"
        if scope.share(cost) < WORTH_SHARE:
            return [self.dismissal(f"{told}: {percent(scope.share(cost))} of the time")]
        if scope.steps is None:
            return [self.dismissal(f"{told}; without step marks it cannot be told whether it repeats")]
        if idle["step"].drop_nulls().n_unique() < STEPS:
            return [self.dismissal(f"{told}, in one step only: it may be the first use of these sizes")]
        runtime = tables["runtime"].select("event", pl.col("name").cast(pl.String), "thread", "ts_ns", call_ns="dur_ns")
        rows = idle.select("event", "dur_ns").join(runtime, on="event", how="inner", maintain_order="left")
        places = Places(tables).around(rows["thread"].to_numpy(), rows["ts_ns"].to_numpy()).select(PLACE)
        return [
            self.finding(
                title=f"Asking the driver for memory and giving it back leaves the {scope.worker} idle for "
                f"{percent(scope.share(place.cost_ns))} of the time ({duration(place.cost_ns)} in "
                f"{per_step(place.rows['event'].n_unique(), scope.steps, 'call')}){place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=(
                    Evidence(
                        event=row["name"],
                        ts_ns=row["ts_ns"],
                        dur_ns=row["call_ns"],
                        note=f"{scope.worker} idle for {duration(row['dur_ns'])} meanwhile",
                    )
                    for row in place.rows.head(3).iter_rows(named=True)
                ),
            )
            for place in by_place(rows.with_columns(places), "dur_ns", scope.length_ns)
        ]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """The driver is not asked any more."""
        idle = tables["idle_spans"].filter((pl.col("cause") == "allocator") & pl.col("event").is_not_null())
        calls = idle["event"].unique().to_numpy()
        return (cut_waits(graph_of(tables), calls, "the cache serves all of these requests", calls_too=True),)

    def fix(self, finding: Finding) -> Fix:
        """Leave the cache alone."""
        return Fix(
            summary="Remove empty_cache() from the training loop; where shapes vary, pad them to a few sizes or set "
            "expandable_segments:True; where memory is nearly full, free some.",
            snippet=SNIPPET,
        )
