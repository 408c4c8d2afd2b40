"""HST001: Python's garbage collector stops the training thread."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.analysis.painting import covered
from slipstream.analysis.places import Places
from slipstream.forecast import Edit, removing
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.places import PLACE, PlaceCost, at_place, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import spans_of
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

COLLECT = "<built-in function collect>"
CAUSES = ("gc", "host", "launch")
"""Causes of idle time under which a pause of the host appears."""
CLEARLY_MORE = 1.25
"""The whole job speaks where its share is this many times that of the window; else the window, which knows places."""
LEFT = (0.3, 0.1, 0.0)
"""What stays of the collections: with a raised threshold, frozen, by hand between epochs."""
STEPS_AFTER = ("plain", "recorded")
SNIPPET = """\
import gc

model, optimizer, loader = set_up()
gc.collect()
gc.freeze()                       # what lives now is never looked through again
gc.disable()                      # and collections come when they do not hurt
for step, batch in enumerate(loader):
    train_step(batch)
    if step % 500 == 499:
        gc.collect(1)"""


class GarbageCollectorPauses(Rule):
    """Garbage collector pauses.

    What it detects
    Pauses of Python's collector that the capture measured, and calls of `gc.collect()` among Python rows, during
    which the device was idle (without a device: the main thread outside ops). Without a device pauses of the whole
    job count where they are a larger share of it than of the recorded window, since the long ones are rare.

    Why it costs time
    The collector looks through every object that could be part of a cycle. A full collection over the objects of a
    training job (configuration, datasets, traced graphs) takes 10 to 500 ms, during which nothing is launched. In
    distributed training ranks pause at different times and wait for each other each time.

    Fix
    `gc.freeze()` after set-up takes long-lived objects out of it; with automatic collection off and a collection
    every few hundred steps, pauses come rarely and on all ranks together. Calls of `gc.collect()` do not belong into
    the step: reference counting frees tensors at once, without the collector.

    When not to
    With collection off, cycles that hold tensors keep their memory until the next collection by hand. Watch the
    memory, or find the cycle.

    Source
    Python documentation, "gc - Garbage Collector interface" (`gc.freeze`, `gc.disable`).
    """

    code = "HST001"
    name = "garbage collector pauses"
    needs: ClassVar = {"window": (), "idle_spans": ()}
    fix_class = "exact"
    treatment = "garbage_collection"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up pauses during which nothing was done."""
        scope = scope_of(tables)
        measured = tables.trace.has("gc_pauses")
        rows = _pauses(tables, scope)
        if not measured and not rows.height:
            raise NotEnoughData("pauses of the garbage collector were not measured: record with `slipstream run`")
        cost = int(rows["cost_ns"].sum())
        job = _share_of_job(tables) if not scope.on_device else 0.0
        if CLEARLY_MORE * scope.share(cost) < job:
            return [self._of_job(tables, scope, job)]
        if not cost:
            return []
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """The pauses of the window are gone but for a rest; pauses of the whole job alone are not replayed."""
        scope = scope_of(tables)
        rows = at_place(_pauses(tables, scope), finding.location)
        cost = int(rows["cost_ns"].sum())
        job = _share_of_job(tables) if not scope.on_device else 0.0
        if CLEARLY_MORE * scope.share(cost) < job:
            return ()
        graph = graph_of(tables)
        begin = rows["ts_ns"].to_numpy()
        share = f"{LEFT[2] * 100:.0f} to {LEFT[0] * 100:.0f} %"
        assumption = f"{share} of the time of these collections stay once they come rarely"
        return (removing(graph, graph.main, begin, begin + rows["dur_ns"].to_numpy(), LEFT, assumption),)

    def fix(self, finding: Finding) -> Fix:
        """Freeze, and collect rarely."""
        return Fix(
            summary="Call gc.freeze() after set-up, switch automatic collection off and collect every few hundred "
            "steps, on all ranks in the same step; remove gc.collect() from the step. Watch the memory: cycles that "
            "hold tensors stay until the next collection.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        by_hand = bool((place.rows["name"] == COLLECT).any())
        what = "Calls of gc.collect() stop" if by_hand else "The garbage collector stops"
        return self.finding(
            title=f"{what} the {scope.worker} for {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'pause')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(event=row["name"], ts_ns=row["ts_ns"], dur_ns=row["dur_ns"], note=row["note"])
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )

    def _of_job(self, tables: Tables, scope: Scope, share: float) -> Finding:
        pauses = tables["gc_pauses"].sort("dur_ns", descending=True)
        longest = int(pauses["dur_ns"][0])
        return self.finding(
            title=f"The garbage collector stops the main thread for {percent(share)} of the whole job, up to "
            f"{duration(longest)} at once",
            cost_ns=round(share * scope.length_ns),
            steps=scope.steps,
            evidence=(
                Evidence(
                    event="garbage collection",
                    ts_ns=row["start_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"generation {row['generation']}",
                )
                for row in pauses.head(3).iter_rows(named=True)
            ),
        )


_ROW = {
    "name": pl.String(),
    "note": pl.String(),
    "ts_ns": pl.Int64(),
    "dur_ns": pl.Int64(),
    **{name: pl.Int32() if name == "line" else pl.String() for name in PLACE},
}


def _pauses(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Collections of the window, with the idle time during each."""
    rows = pl.concat([_by_hand(tables, scope), _measured(tables, scope)])
    return rows.with_columns(cost_ns=_idle_inside(tables, scope, rows))


def _by_hand(tables: Tables, scope: Scope) -> pl.DataFrame:
    rows = tables["python"].filter(
        (pl.col("name").cast(pl.String) == COLLECT)
        & pl.col("thread").eq_missing(pl.lit(scope.main_thread))
        & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    )
    places = Places(tables).around(rows["thread"].to_numpy(), rows["ts_ns"].to_numpy()).select(PLACE)
    return (
        rows.with_columns(note=pl.lit("called by hand"))
        .with_columns(places)
        .select(pl.col(name).cast(to) for name, to in _ROW.items())
    )


def _measured(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Measured pauses of the window, except inside of collections by hand."""
    if not tables.trace.has("gc_pauses"):
        return pl.DataFrame(schema=_ROW)
    rows = tables["gc_pauses"].filter(pl.col("start_ns").is_between(scope.start_ns, scope.end_ns, closed="left"))
    by_hand = _by_hand(tables, scope)
    start = rows["start_ns"].to_numpy()
    free = covered(spans_of(by_hand.sort("ts_ns")), start, start + rows["dur_ns"].to_numpy()) == 0
    rows = rows.filter(pl.Series(free, dtype=pl.Boolean)).rename({"start_ns": "ts_ns"})
    named = rows.with_columns(name=pl.lit("garbage collection"), note=pl.format("generation {}", pl.col("generation")))
    return named.select(
        pl.col(name).cast(to) if name in named.columns else pl.lit(None, to).alias(name) for name, to in _ROW.items()
    )


def _idle_inside(tables: Tables, scope: Scope, rows: pl.DataFrame) -> pl.Series:
    idle = spans_of(tables["idle_spans"].filter(pl.col("cause").is_in(CAUSES)).sort("start_ns"), "start_ns")
    start = rows["ts_ns"].to_numpy()
    return pl.Series(covered(idle, start, np.minimum(start + rows["dur_ns"].to_numpy(), scope.end_ns)), dtype=pl.Int64)


def _share_of_job(tables: Tables) -> float:
    """Share of undisturbed steps of the job that pauses take."""
    if not tables.trace.has("job_steps") or not tables.trace.has("gc_pauses"):
        return 0.0
    steps = tables["job_steps"].filter(pl.col("phase").cast(pl.String).is_in(STEPS_AFTER))
    total = int(steps["dur_ns"].sum())
    pauses = tables["gc_pauses"].filter(pl.col("step").is_in(steps["number"].implode()))
    return int(pauses["dur_ns"].sum()) / total if total else 0.0
