"""LCH005: a Python loop fetches the entries of a tensor one by one."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.launches.loops import ENTRIES, indexing_loops, with_fixed_cost
from slipstream.rules.places import by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import FIXED_NS, costliest, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

NODE = "autograd::engine::evaluate_function: "
FETCHED = rf"^{NODE}(Select|Index|Slice)Backward"
"""Nodes that put the gradient of one entry into a tensor of the full size."""
SNIPPET = """\
total = x.sum(dim=1)                       # not: [x[i].sum() for i in range(len(x))]
picked = x[torch.arange(len(x)), labels]   # not: torch.stack([x[i, labels[i]] for i in range(len(x))])
shifted = x[:, 1:] - x[:, :-1]             # not: a loop over t with x[:, t + 1] - x[:, t]
values = x.tolist()                        # when Python really needs the numbers: all of them at once"""


class PythonIndexingLoop(Rule):
    """Python indexing loop.

    What it detects
    Ten and more entries (`x[i]`: `select`, `index` or `slice`) fetched in a row at one place in the code, with fewer
    than eight other ops from one to the next. Loops inside the data loader are left to INP001. The cost is what one
    call for all entries would save: without a device the Python between ops and the fixed cost of every call, on a
    device the idle time during the loop that the host's pace is the cause of (part of what LCH001 counts).

    Why it costs time
    Every entry costs an indexing call and the ops of the loop's body, each 1 to 50 us whatever its size, where one
    op on the whole tensor would do. In the backward pass every entry has a node of its own, which fills a tensor of
    the full size with zeros to put one entry into it, and adds it to that of the other entries.

    Fix
    Write the body for the whole tensor: reductions with `dim=`, indexing by a tensor, `gather`, slices of shifted
    ranges, `torch.vmap`. Where Python needs the numbers, fetch all of them at once with `tolist()`.

    When not to
    Where each pass depends on the one before (a recurrence) and no built-in op computes it; where the loop is short
    or its body is large.

    Source
    PyTorch documentation, "Tensor views" and "torch.vmap"; NumPy documentation, "Indexing on ndarrays".
    """

    code = "LCH005"
    name = "python indexing loop"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find runs of indexing calls."""
        scope = scope_of(tables)
        loops = with_fixed_cost(tables, scope, indexing_loops(tables, scope))
        if not loops.height:
            return []
        loops = loops.with_columns(pl.col("cost_ns") + _backward_ns(tables, scope, loops))
        if not int(loops["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{per_step(loops.height, scope.steps, 'loop')} over {ENTRIES} and more entries, while the "
                    f"{scope.worker} had other work"
                )
            ]
        return [
            self.finding(
                title=f"A loop fetches entries of a tensor one by one and costs {percent(scope.share(place.cost_ns))} "
                f"of the time ({duration(place.cost_ns)} in "
                f"{per_step(int(place.rows['count'].sum()), scope.steps, 'pass')}){place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows, note="{} of this loop would be saved"),
            )
            for place in by_place(loops, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """One op for all entries."""
        return Fix(
            summary="Replace the loop by ops on the whole tensor: reductions with dim=, indexing by a tensor, gather, "
            "shifted slices, torch.vmap; or tolist() where Python needs the numbers. Not where each pass depends on "
            "the one before.",
            snippet=SNIPPET,
        )


def _backward_ns(tables: Tables, scope: Scope, loops: pl.DataFrame) -> pl.Series:
    """What one pass over everything would save of each loop's part of the backward pass; on a device not counted."""
    if scope.on_device:
        return pl.zeros(loops.height, pl.Int64, eager=True)
    spans = loops.select("thread", "ts_ns", "count", until=pl.col("ts_ns") + pl.col("dur_ns")).with_row_index("loop")
    ops = window_ops(tables, scope).filter(pl.col("sequence").is_not_null())
    backward = pl.col("fwd_thread").fill_null(0) != 0
    made = ops.filter(~backward).sort("ts_ns").join_asof(spans.sort("ts_ns"), on="ts_ns", by="thread")
    made = made.filter(pl.col("ts_ns") < pl.col("until")).unique("sequence").select("sequence", "loop", "count")
    nodes = ops.filter(backward & pl.col("name").str.starts_with(NODE)).join(made, on="sequence")
    whole = (
        pl.when(pl.col("name").str.contains(FETCHED)).then("dur_ns").otherwise(pl.min_horizontal("dur_ns", FIXED_NS))
    )
    saved = nodes.group_by("loop").agg(cost_ns=(whole * (1 - 1 / pl.col("count"))).sum().round().cast(pl.Int64))
    return spans.join(saved, on="loop", how="left", maintain_order="left")["cost_ns"].fill_null(0)
