"""SYN002: the user's code synchronises with the device in the step, and the device runs dry."""

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
# time with events instead of stopping the device
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
train_step(batch)
end.record()
...                                   # some steps later, when it is done anyway
print(start.elapsed_time(end), "ms")"""


class ExplicitSynchronize(Rule):
    """Explicit synchronize in the step.

    What it detects
    Calls of `torch.cuda.synchronize()`, `stream.synchronize()`, `event.synchronize()` and the like that no op
    makes, and that left the device without work: the gap from the end of the last kernel to the first one launched
    afterwards, as far as nothing else explains it. No gap, no finding.

    Why it costs time
    The host waits until the device is done with everything, and only then begins to launch the next work. The
    device idles for as long as that takes, every time.

    Fix
    Remove the call. PyTorch orders work on a stream by itself, and reading a value waits on its own. To measure
    time, record events; to order streams, let one wait for the other on the device (`stream.wait_stream(other)`).

    When not to
    Keep it around host code that shares memory with the device behind PyTorch's back, and around measurements that
    are the purpose of the run. Collective libraries and checkpointing may need theirs.

    Source
    PyTorch documentation, "CUDA semantics: asynchronous execution"; CUDA C++ Programming Guide, "Explicit
    synchronization".
    """

    code = "SYN002"
    name = "explicit synchronize in the step"
    needs: ClassVar = {"window": (), "blocking_calls": (), "idle_spans": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up the gaps behind explicit synchronisation, by the place that asks for it."""
        scope = device_scope(tables)
        rows = _explicit(tables, scope)
        if not rows.height:
            return []
        reason = harmless(rows, int(rows["cost_ns"].sum()), "explicit synchronization", scope)
        if reason:
            return [self.dismissal(reason)]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """The calls are gone."""
        rows = at_place(_explicit(tables, device_scope(tables)), finding.location)
        return (cut_waits(graph_of(tables), rows["event"].to_numpy(), "the calls are gone", calls_too=True),)

    def fix(self, finding: Finding) -> Fix:
        """Remove the call; time with events."""
        return Fix(
            summary="Remove the synchronize: work on a stream keeps its order without it, and reading a value waits by "
            "itself. Time with events. Keep it where host code shares memory with the device outside of PyTorch.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        names = place.rows["name"].unique(maintain_order=True)
        return self.finding(
            title=f"{names[0]} leaves the {scope.worker} idle for {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)} behind {per_step(place.rows.height, scope.steps, 'call')}){place.suffix}"
            f"{doubt(place.rows)}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=evidence_of_calls(place.rows, scope.worker),
        )


def _explicit(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Rows of ``blocking_costs`` that the user's code asked for."""
    rows = blocking_costs(tables, scope)
    return rows.filter(pl.col("kind").is_in(["synchronize", "event"]) & pl.col("explicit"))
