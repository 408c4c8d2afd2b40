"""INP001: the device (or the training thread) stands still until the data loader hands over a batch."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.forecast import Edit, removing
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PLACE, at_place, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, percent, plural
from slipstream.store import Tables

SNIPPET = """\
loader = DataLoader(
    dataset,
    batch_size=batch_size,
    shuffle=True,
    num_workers=4,            # start with the cores this process may use, less one
    persistent_workers=True,  # workers live on from epoch to epoch
    prefetch_factor=4,        # batches that each worker keeps ready
    pin_memory=True,          # only where batches go to a GPU
)"""


HIDDEN_ON_DEVICE = (0.5, 0.25, 0.0)
"""What stays of the waits once workers prepare batches: at worst, as expected, at best. Handing over takes time, and
the first batch of an epoch has nothing to hide behind."""
HIDDEN_ON_HOST = (1.0, 0.5, 0.0)
"""The same where the training computes on the cores that the workers need."""


class GpuWaitsForLoader(Rule):
    """GPU waits for loader.

    What it detects
    Time that the training thread spends inside a DataLoader's `next` while the GPU has nothing left to do. Waits
    during which the GPU still works on earlier launches cost nothing and are not counted. Without a device, the
    whole wait of the training thread counts.

    Why it costs time
    Reading, decoding and collating a batch happen on the CPU. With `num_workers=0` they happen on the training
    thread itself, so nothing is launched meanwhile; with too few or too slow workers the thread waits for them.

    Fix
    Let worker processes prepare batches while the GPU computes: `num_workers` above 0, `persistent_workers=True`, a
    deeper `prefetch_factor`. Where workers are in use already: more of them, as long as there are free cores, or
    less work per sample (decode at the size that is needed, cache what does not change, move augmentation to the
    GPU). The step cannot get shorter than the GPU's own time, nor than the preparation of a batch divided by the
    number of workers.

    When not to
    When all allowed cores are busy already: more workers then slow the training thread down. When the dataset lives
    in memory and a batch is a slice, handing it from process to process can cost more than making it. Workers draw
    augmentations from their own random streams, so single runs will not repeat number by number.

    Source
    PyTorch documentation of torch.utils.data, "Single- and Multi-process Data Loading".
    """

    code = "INP001"
    name = "gpu waits for loader"
    needs: ClassVar = {"window": (), "loader_spans": (), "idle_spans": ()}
    fix_class = "exact"
    changes_random_stream = True
    treatment = "loader_workers"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Count the idle time whose root cause is the loader, by the place that asks for batches."""
        scope = scope_of(tables)
        spans = _in_window(tables, scope)
        if not spans.height:
            return []
        lost = _lost_ns(tables, scope, spans)
        if not lost:
            waited = duration(int(spans["dur_ns"].sum()))
            return [
                self.dismissal(
                    f"the data loader is hidden: {plural(spans.height, 'wait')} of {waited} in all, and the "
                    f"{scope.worker} had work during all of them"
                )
            ]
        spans = _shared_out(spans, lost)
        return [
            self.finding(
                title=_title(place.rows, place.cost_ns, scope) + place.suffix,
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=_evidence(place.rows, scope),
            )
            for place in by_place(spans, "cost_ns", scope.length_ns)
        ]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """Batches are ready when they are asked for, up to what handing them over and the first of an epoch take."""
        scope = scope_of(tables)
        spans = at_place(_in_window(tables, scope), finding.location)
        begin = spans["start_ns"].to_numpy()
        factors = HIDDEN_ON_DEVICE if scope.on_device else HIDDEN_ON_HOST
        share = f"{factors[2] * 100:.0f} to {factors[0] * 100:.0f} %"
        graph = graph_of(tables)
        assumption = f"{share} of the waits for the loader stay once workers prepare batches ahead"
        return (removing(graph, graph.main, begin, begin + spans["dur_ns"].to_numpy(), factors, assumption),)

    def fix(self, finding: Finding) -> Fix:
        """Workers that prepare batches ahead."""
        return Fix(
            summary="Let worker processes prepare batches while training computes: num_workers above 0 with "
            "persistent_workers=True; where there are workers already, raise their number up to the free cores or make "
            "a sample cheaper to prepare. Not when all cores are busy, or when a batch is only a slice of memory.",
            snippet=SNIPPET,
        )


def _in_window(tables: Tables, scope: Scope) -> pl.DataFrame:
    spans = tables["loader_spans"].with_columns(pl.col(PLACE[0], PLACE[2], PLACE[3]).cast(pl.String))
    return spans.filter((pl.col("start_ns") < scope.end_ns) & (pl.col("start_ns") + pl.col("dur_ns") > scope.start_ns))


def _lost_ns(tables: Tables, scope: Scope, spans: pl.DataFrame) -> int:
    """Time of the window that the loader costs."""
    if not scope.on_device:
        return int(spans["idle_ns"].sum())
    return int(tables["idle_spans"].filter(pl.col("cause") == "loader")["dur_ns"].sum())


def _shared_out(spans: pl.DataFrame, lost_ns: int) -> pl.DataFrame:
    """Give every wait its part of the time lost (column ``cost_ns``), by how long the device was idle in it."""
    weight = "idle_ns" if int(spans["idle_ns"].sum()) else "dur_ns"
    # Running sums are rounded, not the parts, so that these add up to the whole.
    until = (pl.col(weight).cum_sum() / pl.col(weight).sum() * lost_ns).round().cast(pl.Int64)
    return spans.with_columns((until - until.shift(1, fill_value=0)).alias("cost_ns"))


def _title(rows: pl.DataFrame, cost_ns: int, scope: Scope) -> str:
    how = ": batches are made on the training thread itself" if rows["single_process"].fill_null(False).all() else ""
    return (
        f"The {scope.worker} waits {percent(scope.share(cost_ns))} of the time for the data loader "
        f"({duration(cost_ns)} of {duration(scope.length_ns)}){how}"
    )


def _evidence(rows: pl.DataFrame, scope: Scope) -> list[Evidence]:
    return [
        Evidence(
            event="DataLoader.__next__",
            ts_ns=row["start_ns"],
            dur_ns=row["dur_ns"],
            note=f"{scope.worker} without work for {duration(row['idle_ns'])} of it",
        )
        for row in rows.head(3).iter_rows(named=True)
    ]
