"""INP003: uploads from ordinary (pageable) memory hold the host up and leave the device without other work."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.analysis.painting import outside, paint
from slipstream.forecast import Edit, cut_waits, on_threads, scaled
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.blocking import blocking_costs, harmless
from slipstream.rules.places import PLACE, PlaceCost, at_place, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.wording import duration, per_step, percent, size
from slipstream.store import Tables

SMALL_BYTES = 64 * 1024
"""Below this a copy is dominated by its fixed cost of about 10 us; pinning cannot help, creating the value on the
device (or sending several together) can."""
LEFT = (1.0, 0.5, 0.3)
"""What stays of a copy's own time from pinned memory: the driver no longer copies through a buffer of its own."""
SNIPPET = """\
loader = DataLoader(dataset, ..., pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to(device, non_blocking=True)
    targets = targets.to(device, non_blocking=True)

# a small tensor that is made on the host only to be sent: make it where it is needed
sizes = torch.arange(n, device=device)         # not torch.arange(n).to(device)"""


class PageableCopiesBlock(Rule):
    """Pageable copies block.

    What it detects
    Copies from pageable host memory to the device (`Memcpy HtoD (Pageable -> Device)`) that cost something: the
    device idles because the host waited for the copy, or the copy runs while no kernel does.

    Why it costs time
    The driver can only read pinned (page-locked) memory by itself. From pageable memory it first copies through a
    buffer of its own, and `cudaMemcpyAsync` comes back only when that is done, often after a wait for everything
    launched before. Meanwhile the host launches nothing, so the device runs dry.

    Fix
    Pin batches in the loader (`pin_memory=True`) and copy with `non_blocking=True`, so that the copy runs beside
    the computation of the step before. Small tensors that are created on the host only to be sent belong on the
    device from the start (`device=device`).

    When not to
    Pinning costs host memory and a thread of its own; with a single-process loader, with few cores or with tiny
    batches it was slower in public reports: measure it. `non_blocking=True` is only safe while the host does not
    change the source before the copy is done.

    Source
    CUDA Runtime API, "API synchronization behavior"; PyTorch tutorial "A guide on good usage of non_blocking and
    pin_memory()".
    """

    code = "INP003"
    name = "pageable copies block"
    needs: ClassVar = {"window": (), "copies": (), "device_work": (), "blocking_calls": (), "idle_spans": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up what pageable uploads cost, by the place that makes them."""
        scope = device_scope(tables)
        uploads = tables["copies"].filter(
            (pl.col("kind") == "HtoD") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns)
        )
        if not uploads.height:
            return []
        if uploads["pageable"].null_count() == uploads.height:
            raise NotEnoughData("whether uploads come from pageable memory is not told by this device's recordings")
        rows = _costs(tables, scope, uploads.filter(pl.col("pageable")))
        if not rows.height:
            return []
        cost = int(rows["cost_ns"].sum())
        reason = harmless(
            rows.with_columns(dur_ns=pl.max_horizontal("dur_ns", "held_ns")), cost, "pageable upload", scope
        )
        if reason:
            return [self.dismissal(reason)]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """The host does not wait for these copies, which take as long as from pinned memory."""
        scope = device_scope(tables)
        calls = at_place(blocking_costs(tables, scope), finding.location)
        inside = pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns)
        uploads = tables["copies"].filter((pl.col("kind") == "HtoD") & pl.col("pageable") & inside)
        mine = calls.filter(pl.col("copy_event").is_in(uploads["event"].implode()))
        if not mine.height:
            return ()
        graph = graph_of(tables)
        copies = np.flatnonzero(np.isin(graph.nodes.event, mine["copy_event"].to_numpy()) & ~on_threads(graph))
        share = f"{LEFT[2] * 100:.0f} to {LEFT[0] * 100:.0f} %"
        return (
            cut_waits(graph, mine["event"].to_numpy(), "the host never waits for these copies"),
            scaled(copies, LEFT, f"from pinned memory they take {share} of the time"),
        )

    def fix(self, finding: Finding) -> Fix:
        """Pinned memory and asynchronous copies; small tensors made on the device."""
        return Fix(
            summary="Pin batches in the loader (pin_memory=True) and copy with non_blocking=True; make small tensors "
            "on the device instead of sending them. Measure it: pinning is not faster with a single-process loader or "
            "tiny batches, and the source must not change before the copy is done.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        each = int(place.rows["size_bytes"].fill_null(0).median() or 0)  # type: ignore[arg-type]
        kind = "small tensors" if each < SMALL_BYTES else "batches"
        return self.finding(
            title=f"Sending {kind} from pageable memory costs {percent(scope.share(place.cost_ns))} of the time: "
            f"{duration(place.cost_ns)} without other work on the {scope.worker}, "
            f"{per_step(place.rows.height, scope.steps, 'upload')} of {size(each)}{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{scope.worker} bare for {duration(row['exposed_ns'])} during the copy, "
                    f"idle for {duration(row['idle_ns'])} because the host waited",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _costs(tables: Tables, scope: Scope, copies: pl.DataFrame) -> pl.DataFrame:
    """Each pageable upload with its place, ``exposed_ns``, ``idle_ns`` and ``cost_ns``.

    The idle time after the call stems from the very time that the host was held during the copy, so of the two only
    the longer one counts; idle time before the copy began comes on top.
    """
    calls = (
        blocking_costs(tables, scope)
        .filter(pl.col("copy_event").is_not_null())
        .group_by("copy_event")
        .agg(
            pl.col("cost_ns").sum().alias("idle_ns"),
            pl.col("after_ns").sum(),
            pl.col("dur_ns").sum().alias("held_ns"),
            pl.col("name").sort_by("dur_ns").last().alias("call"),
            pl.col(*PLACE).drop_nulls().first(),
        )
    )
    return (
        copies.with_columns(exposed_ns=_exposed_ns(tables, copies), name=pl.col("name").cast(pl.String))
        .join(calls, left_on="event", right_on="copy_event", how="left")
        .with_columns(pl.col("idle_ns", "after_ns", "held_ns").fill_null(0))
        .with_columns(cost_ns=pl.col("idle_ns") - pl.col("after_ns") + pl.max_horizontal("exposed_ns", "after_ns"))
    )


def _exposed_ns(tables: Tables, copies: pl.DataFrame) -> pl.Series:
    """The part of each copy during which nothing but copies ran on the device."""
    work = tables["device_work"].filter(pl.col("kind") != "copy")
    begin = work["ts_ns"].to_numpy()
    start = copies["ts_ns"].to_numpy()
    order = np.arange(copies.height)
    bare = outside(
        paint(start, start + copies["dur_ns"].to_numpy(), 0, order), paint(begin, begin + work["dur_ns"].to_numpy(), 0)
    )
    total = np.zeros(copies.height, np.int64)
    np.add.at(total, bare.event, bare.end - bare.start)
    return pl.Series(total)
