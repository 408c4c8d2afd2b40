"""SYN001: a value is read back from the device, and the device runs dry while the host waits for it."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.forecast import Edit, cut_waits
from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.blocking import blocking_costs, doubt, evidence_of_calls, harmless
from slipstream.rules.places import PlaceCost, at_place, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

SNIPPET = """\
# keep the running figure on the device, read it back once in a while
total = torch.zeros((), device=device)
for step, batch in enumerate(loader):
    loss = train_step(batch)
    total += loss.detach()                 # not: total += loss.item()
    if step % 50 == 49:
        print(total.item() / 50)
        total.zero_()

# choose on the device instead of branching on the host
x = torch.where(mask, x, fill)             # not: if mask.any(): x[mask] = fill"""


class ReadBackBlocks(Rule):
    """Read-back blocks.

    What it detects
    Ops that need a value from the device on the host (`item`, `nonzero`, a boolean mask as an index, `.cpu()`,
    `print`) and whose wait left the device without work: the gap from the end of the last kernel to the first one
    launched afterwards, as far as nothing else explains it. No gap, no finding.

    Why it costs time
    Normally the host runs ahead of the device and keeps its queue filled. To hand over a value it must wait until
    everything launched before is done; by then the queue is empty, and the device idles until the host has
    launched enough again.

    Fix
    Read values back less often (every n-th step), together, or later: keep sums on the device, copy with
    `non_blocking=True` into pinned memory and look at them one step later; replace branches and masks by
    `torch.where`.

    When not to
    A read-back that the device does not wait for is harmless; those without a gap are counted here and not
    reported. Where a decision really depends on the value (early stopping, a data-dependent shape), it must be
    read.

    Source
    PyTorch Performance Tuning Guide, "Avoid unnecessary CPU-GPU synchronization".
    """

    code = "SYN001"
    name = "read-back blocks"
    needs: ClassVar = {"window": (), "blocking_calls": (), "idle_spans": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up the gaps behind read-backs, by the place that reads."""
        scope = device_scope(tables)
        rows = _read_backs(tables, scope)
        if not rows.height:
            return []
        reason = harmless(rows, int(rows["cost_ns"].sum()), "read-back", scope)
        if reason:
            return [self.dismissal(reason)]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """Nobody waits for the value any more."""
        rows = at_place(_read_backs(tables, device_scope(tables)), finding.location)
        return (cut_waits(graph_of(tables), rows["event"].to_numpy(), "the host never waits for these values"),)

    def fix(self, finding: Finding) -> Fix:
        """Read less often, together, or later."""
        return Fix(
            summary="Read values back every n-th step, together, or one step later; keep sums on the device and choose "
            "with torch.where instead of branching on a value. Not where a decision of this very step depends on it.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        ops = place.rows.group_by("op").agg(pl.col("cost_ns").sum()).sort("cost_ns", "op", descending=[True, False])
        first = ops["op"].drop_nulls()
        what = f"by {first[0]} " if len(first) else ""
        return self.finding(
            title=f"Reading back {what}leaves the {scope.worker} idle for {percent(scope.share(place.cost_ns))} of the "
            f"time ({duration(place.cost_ns)} behind {per_step(place.rows.height, scope.steps, 'wait')}){place.suffix}"
            f"{doubt(place.rows)}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=evidence_of_calls(place.rows, scope.worker),
        )


def _read_backs(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Rows of ``blocking_costs`` in which a value was waited for."""
    rows = blocking_costs(tables, scope)
    return rows.filter(
        (pl.col("kind") == "read_back") | (pl.col("kind").is_in(["synchronize", "event"]) & ~pl.col("explicit"))
    )
