"""MEM006: tensors are copied, or filled only to be overwritten, for a good part of the time."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import costliest, leaves, marks, window_ops, with_savings, within
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

COPIES_SHARE = 0.05
"""Share of the window in copies from which on it is worth asking whether they are needed."""
COPIERS = (
    r"^aten::(clone|contiguous|reshape|repeat|tile|repeat_interleave|expand_copy|flatten"
    r"|zeros|zeros_like|new_zeros|ones|ones_like|new_ones|full|full_like|new_full)$"
)
"""Ops that copy a tensor of a kind and device it already has (reshape only where a view is impossible) or fill one."""
WRITES = ("aten::copy_", "aten::fill_", "aten::zero_")
SNIPPET = """\
x = x.expand(n, -1, -1)                # a view, where repeat() copies
y = x.transpose(1, 2) @ w              # products take strided inputs: no contiguous() before them
view = x.view(b, s, -1)                # not: x.clone().view(...) or x.contiguous() on what is contiguous already
buffer = torch.empty(n, device=device) # not zeros, where everything is written anyway"""


class NeedlessCopiesAndFills(Rule):
    """Needless copies and fills.

    What it detects
    Copies made by `clone`, `contiguous`, `reshape` of a strided tensor, `repeat` and the like, within one device and
    type, and fills (`zeros`, `full_like`), called by the model's forward pass, that take at least 5 % of the window:
    on a device as far as the host waits for it, and idle time while the host launched them. Copies inside
    optimizers and the backward pass, conversions of type and transfers are left to other rules.

    Why it costs time
    A copy reads and writes every byte and computes nothing; a fill writes what the next op may write anew. Many are
    habit: `contiguous()` before an op that takes strided inputs, `repeat` where `expand` or broadcasting does, a
    clone of what is not changed afterwards.

    Fix
    Go through the places: drop `clone` and `contiguous` where the next op does not need them, expand instead of
    repeat, choose the layout once (`channels_last`, or the order in which attention wants its heads) so that no
    later op has to turn it around.

    When not to
    A recording does not tell whether a copy is needed: `view` after `transpose` needs one, an in-place change of
    shared data needs a clone, and some kernels are so much faster on contiguous data that a copy pays.

    Source
    PyTorch documentation, "Tensor views"; PyTorch Performance Tuning Guide.
    """

    code = "MEM006"
    name = "needless copies and fills"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up copies that the forward pass asked for."""
        scope = scope_of(tables)
        rows = _copies(tables, scope)
        if not rows.height:
            return []
        rows = with_savings(tables, scope, rows)
        cost = int(rows["cost_ns"].sum())
        if scope.share(cost) < COPIES_SHARE:
            return [
                self.dismissal(
                    f"copies and fills within the {'device' if scope.on_device else 'memory'} cost "
                    f"{percent(scope.share(cost))} of the time ({per_step(rows.height, scope.steps, 'tensor')})"
                )
            ]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Go through the places."""
        return Fix(
            summary="Drop clone() and contiguous() where the next op does not need them, expand instead of repeat, "
            "choose one layout from the start. A recording cannot tell whether a copy is needed: check each place.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        callers = place.rows.group_by("caller").agg(pl.col("cost_ns").sum())
        caller = callers.sort("cost_ns", "caller", descending=[True, False])["caller"][0]
        return self.finding(
            title=f"Copies and fills by {caller} and the like take {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'call')}): see which are needed"
            f"{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=costliest(place.rows),
        )


def _copies(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Copying leaves below an op that copies, with the outermost such op as ``caller``."""
    ops = window_ops(tables, scope)
    copiers = ops.filter(pl.col("name").str.contains(COPIERS))
    inside = copiers.with_columns(
        reached=pl.col("end_ns").cum_max().shift(1).over("thread"),
    )
    outermost = inside.filter((pl.col("ts_ns") >= pl.col("reached")).fill_null(True))
    rows = leaves(ops).filter(pl.col("name").is_in(WRITES) & (pl.col("work_ns") > 0))
    rows = rows.sort("ts_ns").join_asof(
        outermost.select("thread", "ts_ns", caller="name", caller_root="root", caller_end_ns="end_ns").sort("ts_ns"),
        on="ts_ns",
        by="thread",
        check_sortedness=False,
    )
    rows = rows.filter(pl.col("ts_ns") < pl.col("caller_end_ns"))
    # Only what the forward pass asks for: roots of the backward pass are nodes.
    nodes = ops.filter(pl.col("name").str.starts_with("autograd::") | (pl.col("fwd_thread").fill_null(0) != 0))
    rows = rows.filter(~pl.col("root").is_in(nodes["event"].implode()))
    return rows.filter(~within(rows, marks(tables, r"^Optimizer\.step#")))
