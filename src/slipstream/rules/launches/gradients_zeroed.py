"""LCH003: gradients are filled with zeros instead of being dropped."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.painting import layer
from slipstream.forecast import Edit
from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.places import at_place, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.savings import without_ops
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import calls_of, costliest, marks, spans_of, window_ops, with_savings, within
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

ZEROING = r"^aten::(zero_|_foreach_zero_|fill_|mul_|_foreach_mul_)$"
"""Ops that overwrite a gradient."""
LEFT = (0.1, 0.0, 0.0)
"""What stays of the time of a fill once the gradient is dropped."""
SNIPPET = """\
optimizer.zero_grad()                  # set_to_none=True is the default
model.zero_grad()
for parameter in model.parameters():   # where gradients are cleared by hand
    parameter.grad = None"""


class GradientsZeroed(Rule):
    """Gradients zeroed instead of dropped.

    What it detects
    Fills (`zero_`) inside `zero_grad` of an optimizer or a module. With `set_to_none=True`, the default, there are
    none. The cost is their time: on a device their kernels as far as the host waits for the device, and idle time
    during which the host was busy with them
    (part of what LCH001 counts).

    Why it costs time
    All gradients are written once with zeros, and the backward pass then reads them and adds to them, instead of
    simply leaving its result there. That addition comes on top and is not counted here.

    Fix
    Call `zero_grad()` without `set_to_none=False`, or set gradients to None by hand.

    When not to
    Where code reads `.grad` of every parameter without asking whether it is None, or relies on a gradient keeping
    its address (a recorded graph, a flat buffer of gradients). An optimizer skips a parameter whose gradient is
    None, while it still applies momentum and weight decay for one that is zero: it matters where parameters take
    no part in some steps.

    Source
    PyTorch Performance Tuning Guide, "Use parameter.grad = None instead of model.zero_grad() or
    optimizer.zero_grad()"; documentation of `torch.optim.Optimizer.zero_grad`.
    """

    code = "LCH003"
    name = "gradients zeroed instead of dropped"
    needs: ClassVar = {"window": (), "ops": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up fills inside zero_grad."""
        scope = scope_of(tables)
        rows = _fills(tables, scope)
        if not rows.height:
            return []
        cost = int(rows["cost_ns"].sum())
        if not cost:
            return [
                self.dismissal(
                    f"gradients are zeroed ({per_step(rows.height, scope.steps, 'fill')}), which costs the "
                    f"{scope.worker} nothing"
                )
            ]
        return [
            self.finding(
                title=f"Gradients are filled with zeros instead of dropped: {percent(scope.share(place.cost_ns))} of "
                f"the time ({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'fill')})"
                f"{place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """The fills are gone."""
        scope = scope_of(tables)
        rows = at_place(_fills(tables, scope), finding.location)
        return without_ops(tables, scope, rows, LEFT, "dropping a gradient takes at most a tenth of filling it")

    def fix(self, finding: Finding) -> Fix:
        """Drop gradients."""
        return Fix(
            summary="Call zero_grad() with set_to_none=True (the default), or set .grad to None by hand. Not where "
            "other code needs a gradient on every parameter or at a fixed address.",
            snippet=SNIPPET,
        )


def _fills(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Outermost ops inside zero_grad that fill, with what each costs."""
    clears = layer(
        [
            marks(tables, r"^Optimizer\.zero_grad#"),
            spans_of(calls_of(tables, r"torch/(optim/optimizer|nn/modules/module)\.py$", "zero_grad")),
        ]
    )
    ops = window_ops(tables, scope)
    rows = ops.filter(within(ops, clears) & pl.col("name").str.contains(ZEROING))
    rows = rows.filter(~pl.col("parent").is_in(rows["event"].implode()).fill_null(False))
    total = pl.col("device_total_ns" if scope.on_device else "dur_ns")
    return with_savings(tables, scope, rows.with_columns(work_ns=total.fill_null(0)))
