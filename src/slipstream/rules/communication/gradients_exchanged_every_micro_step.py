"""COM003: gradients are exchanged in every micro-step, though only their sum is needed."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.communication.exposure import HOST_CALLS, collectives_of_window
from slipstream.rules.places import PLACE, dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import spans_of
from slipstream.rules.wording import duration, percent
from slipstream.store import Tables

OPERATIONS = ("all_reduce", "reduce_scatter")
"""What exchanges gradients; a collective of unknown operation counts as well."""
SNIPPET = """\
for micro, batch in enumerate(micro_batches):
    last = micro == len(micro_batches) - 1
    with contextlib.nullcontext() if last else model.no_sync():
        (loss_of(model, batch) / len(micro_batches)).backward()
optimizer.step()"""


class GradientsExchangedEveryMicroStep(Rule):
    """Gradients exchanged every micro-step.

    What it detects
    Two and more backward passes between two optimizer steps (accumulation), with collectives launched in more than
    one of them. The cost is the communication of all but the last such pass beside which nothing computes; without a
    device the time that the main thread waits for it.

    Why it costs time
    Gradients of micro-batches are added up; summing over ranks once, after the last, gives the same result.
    Exchanged every time, k micro-steps send k times as much.

    Fix
    `model.no_sync()` around all micro-steps but the last (Accelerate and Lightning do it when they are told how many
    micro-steps there are).

    When not to
    With sharded parameters (FSDP) no_sync keeps whole gradients on every rank, which may not fit. Where collectives
    in the backward pass carry activations (tensor parallelism), they are needed every time.

    Source
    PyTorch documentation of `torch.nn.parallel.DistributedDataParallel.no_sync`.
    """

    code = "COM003"
    name = "gradients exchanged every micro-step"
    needs: ClassVar = {"window": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Look for collectives in several backward passes of one update."""
        scope = scope_of(tables)
        rows = _exchanges(tables, scope)
        if not rows.height:
            return []
        passes = _passes(tables)
        if not passes.height:
            return []
        index = np.searchsorted(passes["start_ns"].to_numpy(), rows["at_ns"].to_numpy(), side="right") - 1
        inside = (index >= 0) & (rows["at_ns"].to_numpy() < passes["end_ns"].to_numpy()[np.maximum(index, 0)])
        rows = rows.with_columns(pl.Series("backward", index)).filter(pl.Series(inside, dtype=pl.Boolean))
        numbered = passes.with_row_index("backward").select(pl.col("backward").cast(pl.Int64), "update")
        rows = rows.join(numbered, on="backward", how="left")
        rows = rows.with_columns(
            several=pl.col("backward").n_unique().over("update") > 1, last=pl.col("backward").max().over("update")
        )
        early = rows.filter(pl.col("several") & (pl.col("backward") < pl.col("last")))
        if not early.height:
            return []
        cost = int(early["exposed_ns"].sum())
        each = float(str(passes.group_by("update").len()["len"].median()))
        told = f"gradients are exchanged in every one of {each:.0f} backward passes per update"
        if not cost:
            return [self.dismissal(f"{told}, all of it beside computation")]
        return [
            self.finding(
                title=f"{told[:1].upper()}{told[1:]}: {percent(scope.share(cost))} of the time ({duration(cost)}) goes "
                "into exchanges that the last one makes needless",
                cost_ns=cost,
                steps=scope.steps,
                location=dominant_place(early, "exposed_ns"),
                evidence=(
                    Evidence(
                        event=row["name"],
                        ts_ns=row["ts_ns"],
                        dur_ns=row["dur_ns"],
                        note=f"{duration(row['exposed_ns'])} of it with nothing beside it, in an early micro-step",
                    )
                    for row in early.sort("exposed_ns", "ts_ns", descending=[True, False]).head(3).iter_rows(named=True)
                ),
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Exchange in the last micro-step only."""
        return Fix(
            summary="Put model.no_sync() around all micro-steps but the last. With sharded parameters whole gradients "
            "stay on every rank meanwhile: check the memory. Not for exchanges of activations.",
            snippet=SNIPPET,
        )


def _exchanges(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Gradient exchanges with ``at_ns`` (when they were launched), ``exposed_ns`` and the place."""
    if scope.on_device:
        rows = collectives_of_window(tables, scope)
        rows = rows.filter(pl.col("operation").is_null() | pl.col("operation").is_in(OPERATIONS))
        return rows.drop_nulls("launch_ts_ns").with_columns(at_ns="launch_ts_ns")
    named = pl.col("name").cast(pl.String).str.contains(HOST_CALLS)
    columns = ("event", pl.col("name").cast(pl.String), "ts_ns", "dur_ns")
    calls = pl.concat(
        [
            tables["ops"].filter(named).select(columns),
            tables["annotations"].filter(named & ~pl.col("on_device")).select(columns),
        ]
    ).filter(pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left"))
    if not calls.height:
        return calls
    waits = spans_of(tables["idle_spans"].filter(pl.col("cause") == "comm_wait").sort("start_ns"), "start_ns")
    start = calls["ts_ns"].to_numpy()
    # Overlapping calls share a wait: each wait is given to the call that began last before its end.
    exposed = np.zeros(calls.height, np.int64)
    order = np.argsort(start, kind="stable")
    owner = np.searchsorted(start[order], waits.end, side="left") - 1
    known = owner >= 0
    np.add.at(exposed, order[owner[known]], (waits.end - waits.start)[known])
    none = [pl.lit(None, pl.Int32 if name == "line" else pl.String).alias(name) for name in PLACE]
    return calls.with_columns(*none, exposed_ns=pl.Series(exposed), at_ns="ts_ns")


def _passes(tables: Tables) -> pl.DataFrame:
    """Backward passes: start_ns, end_ns, and the number of optimizer steps before each (``update``).

    Raises:
        NotEnoughData: nothing tells the phases of training apart.
    """
    spans = tables["phase_spans"].with_columns(pl.col("phase").cast(pl.String)).sort("start_ns")
    spans = spans.filter(pl.col("phase").is_in(["backward", "forward", "data", "optimizer"]))
    spans = spans.with_columns(update=(pl.col("phase") == "optimizer").cum_sum())
    new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in ("phase", "update"))
    spans = spans.with_columns(run=new.cum_sum()).filter(pl.col("phase") == "backward")
    return spans.group_by("run", maintain_order=True).agg(
        pl.col("start_ns").min(), end_ns=(pl.col("start_ns") + pl.col("dur_ns")).max(), update=pl.col("update").first()
    )
