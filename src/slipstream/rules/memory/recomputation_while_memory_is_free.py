"""MEM007: the forward pass is computed again in the backward pass, although memory is free."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.memory.room import room_of
from slipstream.rules.places import by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import calls_of, costliest, window_ops, with_savings
from slipstream.rules.wording import duration, per_step, percent, size
from slipstream.store import Tables

FREE_SHARE = 0.5
"""Memory in use from which on recomputation may be needed: kept activations easily take as much again."""
TWICE_SHARE = 0.5
"""Where more than this share of backward nodes record for autograd themselves, it is a second derivative."""
SNIPPET = """\
y = block(x)                                   # not: torch.utils.checkpoint.checkpoint(block, x)
model.gradient_checkpointing_disable()         # Hugging Face
# or checkpoint only every other block: half the recomputation, half the memory saved"""


class RecomputationWhileMemoryIsFree(Rule):
    """Recomputation while memory is free.

    What it detects
    Ops that autograd records inside a node of the backward pass: the forward pass of a checkpointed part, computed
    again. The time of these ops is the cost (on a device as far as the host waits for it, and idle time while the
    host launched them), provided that less than half of the memory was in use at the peak.

    Why it costs time
    Activation checkpointing trades time for memory: each checkpointed part is computed twice, which lengthens a step
    by up to a third. Where the memory would have sufficed, the time is wasted.

    Fix
    Switch checkpointing off, or keep it for every other block only, as far as the memory goes.

    When not to
    Where memory is needed for longer sequences or larger batches that come later in the run: what was recorded may
    not be the worst case. Kept activations grow with both. Another process may want the memory as well.

    Source
    Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; PyTorch documentation of
    `torch.utils.checkpoint`.
    """

    code = "MEM007"
    name = "recomputation while memory is free"
    needs: ClassVar = {"window": (), "ops": ("sequence",)}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find forward ops inside the backward pass, and whether memory is free."""
        scope = scope_of(tables)
        rows = _recomputed(tables, scope)
        if not rows.height:
            return []
        total = pl.col("device_total_ns" if scope.on_device else "dur_ns").fill_null(0)
        rows = with_savings(tables, scope, rows.with_columns(work_ns=total))
        cost = int(rows["cost_ns"].sum())
        told = f"computing the forward pass again takes {duration(cost)} ({percent(scope.share(cost))} of the time)"
        if not cost:
            return [self.dismissal(f"recomputation costs nothing: the {scope.worker} waits for the host anyway")]
        room = room_of(tables, scope)
        if room.share >= FREE_SHARE:
            return [
                self.dismissal(
                    f"{told}, but {percent(room.share)} of the memory of {room.where} was in use: it may be needed"
                )
            ]
        return [
            self.finding(
                title=f"The forward pass is computed again in the backward pass for "
                f"{percent(scope.share(place.cost_ns))} of the time ({duration(place.cost_ns)} in "
                f"{per_step(place.rows.height, scope.steps, 'op')}), while only {size(room.peak_bytes)} of "
                f"{size(room.capacity_bytes)} of memory were in use{place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """Keep activations."""
        return Fix(
            summary="Switch activation checkpointing off, or keep it for some blocks only, as far as the memory goes. "
            "Not where longer sequences or larger batches come later in the run.",
            snippet=SNIPPET,
        )


def _recomputed(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Outermost ops that autograd records inside nodes of the backward pass."""
    ops = window_ops(tables, scope)
    nodes = ops.filter(pl.col("fwd_thread").fill_null(0) != 0)
    recorded = ops.filter((pl.col("fwd_thread") == 0) & pl.col("sequence").is_not_null())
    rows = recorded.filter(pl.col("parent").is_in(nodes["event"].implode()))
    if not rows.height:
        return rows
    if calls_of(tables, r"torch/utils/checkpoint\.py$", ".*").height or nodes["name"].str.contains("^Checkpoint").any():
        return rows
    # Ordinary nodes compute without recording; when most of them record, the user asked for a second derivative.
    twice = rows["parent"].n_unique() > TWICE_SHARE * nodes.filter(~pl.col("name").str.contains("::")).height
    return rows.clear() if twice else rows
