"""PRC005: numbers are converted between 32 and 16 bits again and again."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix, NotEnoughData
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import costliest, window_ops, with_savings
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

CASTS_SHARE = 0.05
"""Share of the window in conversions that comes with mixed precision anyway."""
FLOATS = ("float", "double", "c10::Half", "c10::BFloat16")
SNIPPET = """\
with torch.autocast("cuda", dtype=torch.bfloat16):   # once around forward and loss: weights are cast once
    loss = criterion(model(inputs), targets)

model = torch.compile(model)                         # casts become part of the kernels around them
# and no .float() / .half() on activations inside the model, except where an op needs it"""


class CastStorm(Rule):
    """Cast storm.

    What it detects
    Conversions between floating-point types (`copy_` with two such types), forward and backward, that take at least
    5 % of the window: on a device their kernels as far as the host waits for it, and idle time while the host
    launched them; without a device their time.

    Why it costs time
    Under autocast every op that wants another type converts its inputs: a read and a write of the whole tensor, a
    launch, and the same in the backward pass. Weights are converted once per autocast region, so entering one for
    every layer or micro-step converts them anew each time.

    Fix
    One autocast region around forward and loss; no explicit `.float()` between ops that do not need it;
    `torch.compile`, which makes conversions part of neighbouring kernels.

    When not to
    Softmax, norms and losses are computed in 32 bits for a reason: do not force them into 16 bits to save a cast.

    Source
    PyTorch documentation, "Automatic Mixed Precision package" (op-specific behavior, weight cache).
    """

    code = "PRC005"
    name = "cast storm"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up conversions between floating-point types."""
        scope = scope_of(tables)
        ops = window_ops(tables, scope)
        copies = ops.filter((pl.col("name") == "aten::copy_") & (pl.col("work_ns") > 0))
        if not copies.height:
            return []
        if copies["input_types"].null_count() == copies.height:
            raise NotEnoughData("types of inputs were not recorded: record with record_shapes=True")
        into = pl.col("input_types").str.json_path_match("$[0]")
        of = pl.col("input_types").str.json_path_match("$[1]")
        casts = copies.filter(into.is_in(FLOATS) & of.is_in(FLOATS) & (into != of))
        if not casts.height:
            return []
        rows = with_savings(tables, scope, casts)
        cost = int(rows["cost_ns"].sum())
        if scope.share(cost) < CASTS_SHARE:
            return [
                self.dismissal(
                    f"conversions between floating-point types cost {percent(scope.share(cost))} of the time "
                    f"({per_step(rows.height, scope.steps, 'conversion')})"
                )
            ]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """One region, compiled."""
        return Fix(
            summary="Enter autocast once around forward and loss, drop explicit conversions between ops that do not "
            "need them, and compile, which merges casts into neighbouring kernels. Leave softmax, norms and losses in "
            "32 bits.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        return self.finding(
            title=f"Conversions between floating-point types take {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'conversion')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=costliest(place.rows),
        )
