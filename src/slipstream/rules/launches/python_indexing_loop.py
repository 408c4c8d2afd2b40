"""LCH005: a Python loop fetches the entries of a tensor one by one."""

from typing import ClassVar

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.launches.loops import ENTRIES, indexing_loops, with_fixed_cost
from slipstream.rules.places import by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import scope_of
from slipstream.rules.window_ops import costliest
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

SNIPPET = """\
total = x.sum(dim=1)                       # not: [x[i].sum() for i in range(len(x))]
picked = x[torch.arange(len(x)), labels]   # not: torch.stack([x[i, labels[i]] for i in range(len(x))])
shifted = x[:, 1:] - x[:, :-1]             # not: a loop over t with x[:, t + 1] - x[:, t]
values = x.tolist()                        # when Python really needs the numbers: all of them at once"""


class PythonIndexingLoop(Rule):
    """Python indexing loop.

    What it detects
    Ten and more entries (`x[i]`: `select`, `index` or `slice`) fetched in a row at one place in the code, with fewer
    than eight other ops from one to the next. Loops inside the data loader are left to INP001. The cost is what one
    call for all entries would save: without a device the Python between ops and the fixed cost of every call, on a
    device the idle time during the loop that the host's pace is the cause of (part of what LCH001 counts).

    Why it costs time
    Every entry costs an indexing call and the ops of the loop's body, each 1 to 50 us whatever its size, where one
    op on the whole tensor would do. In the backward pass every entry has a node of its own, which fills a tensor of
    the full size with zeros to put one entry into it; that is not counted here.

    Fix
    Write the body for the whole tensor: reductions with `dim=`, indexing by a tensor, `gather`, slices of shifted
    ranges, `torch.vmap`. Where Python needs the numbers, fetch all of them at once with `tolist()`.

    When not to
    Where each pass depends on the one before (a recurrence) and no built-in op computes it; where the loop is short
    or its body is large.

    Source
    PyTorch documentation, "Tensor views" and "torch.vmap"; NumPy documentation, "Indexing on ndarrays".
    """

    code = "LCH005"
    name = "python indexing loop"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find runs of indexing calls."""
        scope = scope_of(tables)
        loops = with_fixed_cost(tables, scope, indexing_loops(tables, scope))
        if not loops.height:
            return []
        if not int(loops["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{per_step(loops.height, scope.steps, 'loop')} over {ENTRIES} and more entries, while the "
                    f"{scope.worker} had other work"
                )
            ]
        return [
            self.finding(
                title=f"A loop fetches entries of a tensor one by one and costs {percent(scope.share(place.cost_ns))} "
                f"of the time ({duration(place.cost_ns)} in "
                f"{per_step(int(place.rows['count'].sum()), scope.steps, 'pass')}){place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows, note="{} of this loop would be saved"),
            )
            for place in by_place(loops, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """One op for all entries."""
        return Fix(
            summary="Replace the loop by ops on the whole tensor: reductions with dim=, indexing by a tensor, gather, "
            "shifted slices, torch.vmap; or tolist() where Python needs the numbers. Not where each pass depends on "
            "the one before.",
            snippet=SNIPPET,
        )
