"""COM001: collectives run while nothing computes, so the step waits for the network."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.analysis.painting import outside, paint
from slipstream.forecast import Edit, on_threads, scaled
from slipstream.model import Dismissal, Evidence, Finding, Fix, Location, NotEnoughData
from slipstream.rules.places import PLACE, dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

HOST_CALLS = r"^(gloo|mpi|ucc):|^c10d::"
"""Ops and marks of collectives on the host, where processes without a device exchange gradients."""
SNIPPET = """\
# exchange while the backward pass still computes, in fewer and larger pieces
model = DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True, static_graph=True)

# several micro-batches per update: exchange only in the last one
for micro, batch in enumerate(batches):
    with contextlib.nullcontext() if micro == len(batches) - 1 else model.no_sync():
        loss_of(model, batch).backward()"""


class ExposedCommunication(Rule):
    """Exposed communication.

    What it detects
    Time in which a collective (all-reduce, all-gather, all-to-all, ...) ran on the device and no other kernel did.
    Without a device: time that the main thread spends in collectives of gloo or MPI, or waiting for them.

    Why it costs time
    Communication is free as long as something else computes meanwhile. What is left over, mostly at the end of the
    backward pass, at sharded layers or at exchanges of embeddings, lengthens the step one to one.

    Fix
    Begin earlier and exchange less: larger or better ordered gradient buckets, `no_sync()` for all but the last
    micro-batch, prefetching for sharded models, compressed gradients, more work per exchange. Where a rank arrives
    late, help that rank first: the others spend the time inside the collective.

    When not to
    From one rank alone, transfer cannot be told from waiting for a later rank; look at all ranks before buying
    bandwidth. Overlapping slows the kernels that run beside it. Larger buckets begin later.

    Source
    Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020; exposed time is
    the union of collectives less the union of other kernels.
    """

    code = "COM001"
    name = "exposed communication"
    needs: ClassVar = {"window": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up collective time beside which nothing computes."""
        scope = scope_of(tables)
        if not scope.on_device:
            return self._on_host(tables, scope)
        work = tables["device_work"]
        collectives = work.filter(
            (pl.col("kind") == "collective")
            & (pl.col("ts_ns") < scope.end_ns)
            & (pl.col("ts_ns") + pl.col("dur_ns") > scope.start_ns)
        )
        if not collectives.height:
            if (tables.source.world_size or 1) > 1 and tables["ops"].filter(_named("ops", HOST_CALLS)).height:
                raise NotEnoughData("collectives were launched, but their kernels are missing from this recording")
            return []
        rows = _exposed(work, collectives, scope)
        cost = int(rows["exposed_ns"].sum())
        total = _union_ns(collectives, scope)
        if not cost:
            return [self.dismissal(f"{duration(total)} of communication, all of it beside computation")]
        return [
            self.finding(
                title=f"Communication that no computation hides takes {percent(scope.share(cost))} of the time: "
                f"{duration(cost)} of {duration(total)} in {per_step(collectives.height, scope.steps, 'collective')}"
                f"{_mainly(tables, rows)}",
                cost_ns=cost,
                steps=scope.steps,
                location=_location(tables, rows),
                evidence=_evidence(rows),
            )
        ]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """All communication lies beside computation."""
        scope = scope_of(tables)
        if not scope.on_device:
            return ()
        work = tables["device_work"]
        rows = _exposed(work, work.filter(pl.col("kind") == "collective"), scope).sort("event")
        graph = graph_of(tables)
        events = rows["event"].to_numpy()
        tasks = np.flatnonzero(np.isin(graph.nodes.event, events) & ~on_threads(graph))
        of_task = np.searchsorted(events, graph.nodes.event[tasks])
        exposed = (rows["exposed_ns"] / rows["dur_ns"].clip(1)).to_numpy()[of_task]
        left = np.stack([np.ones(len(tasks)), 1 - exposed, 1 - exposed], axis=1)
        return (scaled(tasks, left, "all communication finds computation to hide behind", ceiling=True),)

    def fix(self, finding: Finding) -> Fix:
        """Exchange earlier, less often, and in larger pieces."""
        return Fix(
            summary="Exchange earlier and less: larger gradient buckets with a static graph, no_sync() for all but the "
            "last micro-batch, prefetching for sharded models. First compare the ranks: if one arrives late, the "
            "others only wait, and that rank's own trouble is the cause.",
            snippet=SNIPPET,
        )

    def _on_host(self, tables: Tables, scope: Scope) -> list[Finding | Dismissal]:
        calls = pl.concat(
            [
                tables["ops"].filter(_named("ops", HOST_CALLS)).select(_CALL),
                tables["annotations"].filter(_named("annotations", HOST_CALLS) & ~pl.col("on_device")).select(_CALL),
            ]
        ).filter((pl.col("ts_ns") < scope.end_ns) & (pl.col("ts_ns") + pl.col("dur_ns") > scope.start_ns))
        if not calls.height:
            if (tables.source.world_size or 1) > 1 and not tables["ops"].height:
                raise NotEnoughData("no host ops in this recording of a distributed job: record with activities=[CPU]")
            return []
        waits = tables["idle_spans"].filter(pl.col("cause") == "comm_wait")
        mine = calls.filter(pl.col("thread") == scope.main_thread)
        start, end = _clipped(mine, scope)
        begin = waits["start_ns"].to_numpy()
        spans = paint(np.append(start, begin), np.append(end, begin + waits["dur_ns"].to_numpy()), 0)
        cost = spans.total_ns
        if not cost:
            return [
                self.dismissal(f"{per_step(calls.height, scope.steps, 'collective')}, none of them on the main thread")
            ]
        rows = mine.with_columns(exposed_ns=pl.Series(end - start), op_event=pl.col("event"))
        named = tables["events"].select("event", pl.col("name").cast(pl.String))
        shown = pl.concat(
            [
                rows.select("name", "ts_ns", "dur_ns", "exposed_ns"),
                waits.join(named, on="event", how="left").select(
                    pl.format("wait for {}", pl.col("name").fill_null("other processes")).alias("name"),
                    pl.col("start_ns").alias("ts_ns"),
                    "dur_ns",
                    pl.col("dur_ns").alias("exposed_ns"),
                ),
            ]
        ).sort("exposed_ns", "ts_ns", descending=[True, False])
        return [
            self.finding(
                title=f"The main thread spends {percent(scope.share(cost))} of the time in communication with other "
                f"processes ({duration(cost)} in {per_step(mine.height, scope.steps, 'call')})",
                cost_ns=cost,
                steps=scope.steps,
                location=_location(tables, rows),
                evidence=_evidence(shown),
            )
        ]


_CALL = ("event", pl.col("name").cast(pl.String), "thread", "ts_ns", "dur_ns")


def _named(table: str, pattern: str) -> pl.Expr:
    return pl.col("name").cast(pl.String).str.contains(pattern)


def _clipped(rows: pl.DataFrame, scope: Scope) -> tuple[np.ndarray, np.ndarray]:
    start = rows["ts_ns"].to_numpy()
    end = start + rows["dur_ns"].to_numpy()
    return np.clip(start, scope.start_ns, scope.end_ns), np.clip(end, scope.start_ns, scope.end_ns)


def _union_ns(rows: pl.DataFrame, scope: Scope) -> int:
    start, end = _clipped(rows, scope)
    return paint(start, end, 0).total_ns


def _exposed(work: pl.DataFrame, collectives: pl.DataFrame, scope: Scope) -> pl.DataFrame:
    """Collectives with the part of each beside which nothing computed; overlapping ones count once."""
    compute = work.filter(pl.col("kind").is_in(["kernel", "set"]))
    start, end = _clipped(collectives, scope)
    bare = outside(paint(start, end, 0, np.arange(collectives.height)), paint(*_clipped(compute, scope), 0))
    exposed = np.zeros(collectives.height, np.int64)
    np.add.at(exposed, bare.event, bare.end - bare.start)
    return collectives.with_columns(pl.col("name").cast(pl.String), exposed_ns=pl.Series(exposed)).sort(
        "exposed_ns", descending=True
    )


def _mainly(tables: Tables, rows: pl.DataFrame) -> str:
    """The operation that most of the exposed time is spent in, for the title."""
    known = rows.join(
        tables["collectives"].select("event", pl.col("operation").cast(pl.String)), on="event", how="left"
    )
    sums = known.filter(pl.col("operation").is_not_null()).group_by("operation").agg(pl.col("exposed_ns").sum())
    if not sums.height:
        return ""
    return f", most in {sums.sort('exposed_ns', descending=True)['operation'][0]}"


def _location(tables: Tables, rows: pl.DataFrame) -> Location | None:
    if not tables.has("op_places") or not rows["op_event"].drop_nulls().len():
        return None
    places = tables["op_places"].select(pl.col("event").alias("op_event"), *PLACE)
    return dominant_place(rows.join(places, on="op_event", how="left"), "exposed_ns")


def _evidence(rows: pl.DataFrame) -> list[Evidence]:
    return [
        Evidence(
            event=row["name"],
            ts_ns=row["ts_ns"],
            dur_ns=row["dur_ns"],
            note=f"{duration(row['exposed_ns'])} of it with nothing beside it",
        )
        for row in rows.head(3).iter_rows(named=True)
    ]
