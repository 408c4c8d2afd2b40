"""CMP006: autograd records a forward pass of which no backward pass follows."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.painting import covered
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import LAUNCH, pace_idle, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

NODES = 30
"""Nodes in the window from which on it is a forward pass, and not a metric computed beside the loss."""
NODE_NS = 1_000
"""What making and dropping a node costs the host: measured 0.3 us for a product with a number, 1.2 us with weights."""
SNIPPET = """\
model.eval()
with torch.inference_mode():        # or torch.no_grad(), where results are used in training later
    for batch in validation_loader:
        metric.update(model(batch))"""


class AutogradInEvaluation(Rule):
    """Autograd in evaluation.

    What it detects
    Thirty and more nodes that autograd made for ops of the window and that no backward pass of the recording ever
    visits. The cost is 1 us of the host for each node, on a device no more than the idle time while the host
    launched these ops.

    Why it costs time
    For each op autograd makes a node, links it to others and keeps the inputs alive. The time is small next to large
    ops; the memory is not: activations of the whole pass stay until the output is dropped, which limits the batch of
    an evaluation.

    Fix
    `torch.inference_mode()` (or `torch.no_grad()`) around evaluation, with `model.eval()`.

    When not to
    Where gradients are taken after the recording ended; results made in inference mode cannot take part in training
    later, those made under `no_grad` can.

    Source
    PyTorch documentation, "Autograd mechanics: locally disabling gradient computation".
    """

    code = "CMP006"
    name = "autograd in evaluation"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find nodes that no backward pass visits."""
        scope = scope_of(tables)
        ops = window_ops(tables, scope)
        rows = _unvisited(tables, ops)
        if rows.height < NODES:
            return []
        rows = _with_costs(tables, scope, rows)
        cost = int(rows["cost_ns"].sum())
        told = f"autograd made {per_step(rows.height, scope.steps, 'node')} that no backward pass visits"
        if not cost:
            return [self.dismissal(f"{told}: it costs memory, but the {scope.worker} had other work meanwhile")]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Inference mode."""
        return Fix(
            summary="Put torch.inference_mode() around evaluation (torch.no_grad() where its results are used in "
            "training later). It saves more memory than time. Not where gradients of this pass are taken later.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        return self.finding(
            title=f"Autograd records {per_step(place.rows.height, scope.steps, 'op')} of which no gradient is taken: "
            f"about {percent(scope.share(place.cost_ns))} of the time ({duration(place.cost_ns)}), and the memory of "
            f"their inputs{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(event=row["name"], ts_ns=row["ts_ns"], dur_ns=row["dur_ns"], note="recorded, never visited")
                for row in place.rows.sort("ts_ns").head(3).iter_rows(named=True)
            ),
        )


def _unvisited(tables: Tables, ops: pl.DataFrame) -> pl.DataFrame:
    """Forward ops that made a node which no backward pass of the recording visits, one row per node.

    An op carries the number that the next node will get; the number moves on when a node was made.
    """
    backward = tables["ops"].filter(pl.col("fwd_thread").fill_null(0) != 0)
    visited = backward["sequence"].drop_nulls().unique()
    forward = ops.filter((pl.col("fwd_thread").fill_null(0) == 0) & pl.col("sequence").is_not_null())
    made = forward.filter(pl.col("sequence") < pl.col("sequence").max().over("thread"))
    if backward.height:
        # A recording may be cut between forward and backward: what follows the last backward pass is not judged.
        last = backward.select((pl.col("ts_ns") + pl.col("dur_ns")).max()).item()
        made = made.filter(pl.col("ts_ns") < last)
    nodes = made.sort("ts_ns", "end_ns", descending=[False, True]).unique(
        ["thread", "sequence"], keep="last", maintain_order=True
    )
    return nodes.filter(~pl.col("sequence").is_in(visited.implode()))


def _with_costs(tables: Tables, scope: Scope, rows: pl.DataFrame) -> pl.DataFrame:
    if not scope.on_device:
        return rows.with_columns(cost_ns=pl.lit(NODE_NS, pl.Int64))
    idle = np.zeros(rows.height, np.int64)
    for thread in rows["thread"].unique():
        mine = (rows["thread"] == thread).to_numpy()
        start, end = rows["ts_ns"].to_numpy()[mine], rows["end_ns"].to_numpy()[mine]
        idle[mine] = covered(pace_idle(tables, thread, LAUNCH), start, end)
    return rows.with_columns(cost_ns=pl.Series(np.minimum(idle, NODE_NS), dtype=pl.Int64))
