"""COM007: buffers and statistics are exchanged in the forward pass of every step."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.communication.exposure import collectives_of_window
from slipstream.rules.places import by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import costliest, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

FORWARD = "DistributedDataParallel.forward"
SYNCED = "SyncBatchNorm"
SNIPPET = """\
# running statistics are only used in evaluation: rank 0's are saved anyway
model = DistributedDataParallel(model, device_ids=[local_rank], broadcast_buffers=False)
# and torch.nn.SyncBatchNorm only where the batch of one GPU is too small for its own statistics"""


class BuffersExchanged(Rule):
    """Buffers and statistics exchanged every step.

    What it detects
    Broadcasts that DistributedDataParallel makes at the beginning of its forward pass (buffers such as running
    statistics), and collectives launched by SyncBatchNorm, beside which nothing computes.

    Why it costs time
    Nothing can hide a broadcast at the start of the forward pass. SyncBatchNorm stops every rank at every layer of
    its kind, forward and backward, until all others have arrived.

    Fix
    `broadcast_buffers=False` where buffers are only statistics for evaluation. Ordinary batch normalisation where
    each GPU has enough samples for its own statistics.

    When not to
    Without the broadcast the ranks' running statistics drift apart, so that evaluation on another rank than 0 gives
    other results; buffers that training itself reads must stay equal. Ordinary batch normalisation trains something
    else: it is needed where a GPU has only a few samples.

    Source
    PyTorch documentation of DistributedDataParallel (`broadcast_buffers`) and of torch.nn.SyncBatchNorm.
    """

    code = "COM007"
    name = "buffers exchanged every step"
    needs: ClassVar = {"window": (), "device_work": ()}
    fix_class = "semantic"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up bare broadcasts of the forward pass and exchanges of SyncBatchNorm."""
        scope = device_scope(tables)
        rows = collectives_of_window(tables, scope)
        if not rows.height:
            return []
        rows = rows.with_columns(what=_what(tables, scope, rows)).drop_nulls("what")
        rows = rows.with_columns(cost_ns="exposed_ns")
        if not rows.height:
            return []
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(f"{per_step(rows.height, scope.steps, 'exchange')} of {rows['what'][0]}, all hidden")
            ]
        return [
            self.finding(
                title=f"Exchanging {place.rows['what'][0]} takes {percent(scope.share(place.cost_ns))} of the time "
                f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'collective')} that nothing "
                f"hides){place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows, note="{} with nothing beside it"),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """Leave buffers to each rank."""
        return Fix(
            summary="Pass broadcast_buffers=False where buffers are only statistics for evaluation, and use ordinary "
            "batch normalisation where each GPU has enough samples. Statistics of ranks then drift apart: evaluate on "
            "rank 0, and compare a validation metric.",
            snippet=SNIPPET,
            needs_consent=True,
        )


def _what(tables: Tables, scope: Scope, rows: pl.DataFrame) -> pl.Series:
    """What each collective exchanges, in words, or null where it is neither."""
    ops = window_ops(tables, scope)
    synced = ops.filter(pl.col("name").str.contains(SYNCED, literal=True)).select("ts_ns", "end_ns").sort("ts_ns")
    forward = tables["annotations"].filter(~pl.col("on_device") & (pl.col("name").cast(pl.String) == FORWARD))
    forward = forward.select("ts_ns", end_ns=pl.col("ts_ns") + pl.col("dur_ns")).sort("ts_ns")
    broadcast = (rows["operation"] == "broadcast").fill_null(False)
    statistics, buffers = _inside(rows, synced), _inside(rows, forward) & broadcast
    return pl.select(
        pl.when(statistics)
        .then(pl.lit("statistics of SyncBatchNorm"))
        .when(buffers)
        .then(pl.lit("buffers of the model"))
    ).to_series()


def _inside(rows: pl.DataFrame, spans: pl.DataFrame) -> pl.Series:
    """Whether each collective was launched inside one of some spans."""
    found = (
        rows.with_row_index("row")
        .sort("launch_ts_ns")
        .join_asof(spans.select(span_ns="ts_ns", span_end_ns="end_ns"), left_on="launch_ts_ns", right_on="span_ns")
    )
    return found.sort("row").select((pl.col("launch_ts_ns") < pl.col("span_end_ns")).fill_null(False)).to_series()
