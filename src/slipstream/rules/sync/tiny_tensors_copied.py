"""SYN004: hundreds of tiny tensors are sent to the device one by one."""

from typing import ClassVar

import polars as pl

from slipstream.forecast import Edit
from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.places import PlaceCost, at_place, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.savings import without_ops
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import costliest, window_ops, with_savings
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

TINY_BYTES = 64
PER_STEP = 100
"""Tiny uploads per step (in the window, where steps are not known) from which on they are sent in a loop."""
LEFT = (0.5, 0.2, 0.05)
"""What stays of making tensors one by one: a few uploads, one, one of many values."""
SNIPPET = """\
lengths = torch.tensor([len(sample) for sample in samples], device=device)   # one upload
# not: [torch.tensor(len(sample)).to(device) for sample in samples]
scale = torch.full((), 0.5, device=device)                                   # or made where it is needed"""


class TinyTensorsCopied(Rule):
    """Tiny host tensors copied one by one.

    What it detects
    A hundred and more uploads of at most 64 bytes from pageable memory in a step. The cost is the idle time of the
    device while the host was inside the ops that make them, as far as launching is its cause. Where the host had to
    wait for the device, INP003 counts it.

    Why it costs time
    An upload of 4 bytes costs the host as much as one of 64 kB: 10 to 20 us for the tensor, the call and the wait.

    Fix
    Collect values in a list and make one tensor of them on the device; create constants there, once.

    When not to
    Values that are known only one after the other, each needed at once.

    Source
    PyTorch tutorial "A guide on good usage of non_blocking and pin_memory()"; CUDA C++ Best Practices Guide, "Data
    Transfer Between Host and Device" (batch small transfers).
    """

    code = "SYN004"
    name = "tiny host tensors copied one by one"
    needs: ClassVar = {"window": (), "copies": (), "device_work": (), "idle_spans": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Count tiny uploads, and the idle time while they are made."""
        scope = device_scope(tables)
        tiny = _tiny(tables, scope)
        if tiny.height < PER_STEP * (scope.steps or 1):
            return []
        rows = _makers(tables, scope, tiny)
        told = f"{per_step(tiny.height, scope.steps, 'upload')} of at most {TINY_BYTES} bytes"
        if not rows.height or not int(rows["cost_ns"].sum()):
            return [self.dismissal(f"{told}, while the {scope.worker} had other work")]
        return [self._finding(place, scope, told) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """Making them takes a fraction of the time, in one go."""
        scope = device_scope(tables)
        rows = at_place(_makers(tables, scope, _tiny(tables, scope)), finding.location)
        share = f"{LEFT[2] * 100:.0f} to {LEFT[0] * 100:.0f} %"
        return without_ops(tables, scope, rows, LEFT, f"one upload for all takes {share} of the time of these")

    def fix(self, finding: Finding) -> Fix:
        """One upload for all."""
        return Fix(
            summary="Collect the values and make one tensor of them on the device (torch.tensor(values, "
            "device=device)); create constants there, once. Not where each value is needed before the next is known.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope, told: str) -> Finding:
        return self.finding(
            title=f"{told}: the {scope.worker} is idle for {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)}) while the host makes them{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=costliest(place.rows),
        )


def _tiny(tables: Tables, scope: Scope) -> pl.DataFrame:
    return tables["copies"].filter(
        (pl.col("kind") == "HtoD")
        & pl.col("pageable").fill_null(True)
        & (pl.col("size_bytes") <= TINY_BYTES)
        & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns)
    )


def _makers(tables: Tables, scope: Scope, tiny: pl.DataFrame) -> pl.DataFrame:
    """Outermost ops that upload tiny tensors, with the idle time that each costs."""
    calls = tables["device_work"].filter(pl.col("event").is_in(tiny["event"].implode()))["op_event"].drop_nulls()
    ops = window_ops(tables, scope)
    roots = ops.filter(pl.col("event").is_in(calls.implode()))["root"].unique()
    return with_savings(tables, scope, ops.filter(pl.col("event").is_in(roots.implode())).with_columns(work_ns=0))
