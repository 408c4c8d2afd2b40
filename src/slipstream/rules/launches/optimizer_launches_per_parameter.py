"""LCH002: the optimizer updates one parameter after the other instead of all together."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.analysis.painting import Painted, covered, paint
from slipstream.forecast import Edit, removing
from slipstream.model import Dismissal, Evidence, Finding, Fix, Location
from slipstream.rules.places import PLACE, dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, percent
from slipstream.store import Tables

RANGE = "Optimizer.step#"
REPEATS = 30
"""An op that comes this often in one optimizer step is called per parameter: batched optimizers call each of theirs
once per parameter group, data type and chunk."""
BATCHED = r"multi_tensor_apply|_foreach_|^aten::_fused_|fused_(adam|sgd|lamb)"
"""Kernels and ops that work on many parameters at once."""
BATCHED_SHARE = 0.5
"""Share of launches in batched kernels from which the optimizer counts as batched, stragglers aside."""
DISPATCH_NS = 5_000
"""The most that a call's fixed cost is taken for: calling an op on a tiny tensor takes 1 to 5 us while recorded."""
FUSED_CALLS = 6
"""Calls per parameter that even a fused optimizer makes on the CPU (counting the step, reading its counter)."""
SHORTEST_QUANTILE = 0.05
"""The call of an op that is longer than only this share of them shows its fixed cost."""
LEFT = (0.6, 0.3, 0.05)
"""What stays of the time for making calls: foreach over several groups, foreach, fused."""
SNIPPET = """\
optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)     # one pass for all parameters
# where fused is not available for the optimizer or the device:
optimizer = torch.optim.AdamW(model.parameters(), lr=lr, foreach=True)"""


class OptimizerLaunchesPerParameter(Rule):
    """Optimizer launches per parameter.

    What it detects
    Optimizer steps in which the same op comes 30 times and more, once for each parameter, where batched
    (`foreach`, `multi_tensor_apply`) or fused kernels would take all parameters together. On a device the cost is
    the idle time between the optimizer's kernels; on the CPU it is the time of the step outside ops plus the fixed
    cost of each call, less the share of calls that a fused optimizer makes as well. On a device it is part of what
    LCH001 counts.

    Why it costs time
    Adam needs about ten small ops per parameter. For a model of 200 parameters these are 2,000 calls of a few
    microseconds each, most of them for tensors so small that the call costs more than the arithmetic.

    Fix
    `fused=True` (one kernel per group of parameters; SGD, Adam and AdamW on CPU and CUDA, Adagrad on CPU) or
    `foreach=True`. Many parameter groups of one tensor each undo the effect: merge groups with equal settings.

    When not to
    `foreach` keeps temporary copies of about the size of the parameters. Where a few large parameters take nearly
    all of the time, fused and foreach were no faster, or slower, in public reports: measure it. With GradScaler
    use a PyTorch version whose fused optimizer knows it.

    Source
    PyTorch documentation of torch.optim, "foreach and fused implementations".
    """

    code = "LCH002"
    name = "optimizer launches per parameter"
    needs: ClassVar = {"window": (), "ops": ()}
    fix_class = "rounding"
    treatment = "fused_optimizer"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Look into every optimizer step of the window."""
        scope = scope_of(tables)
        steps = _optimizer_steps(tables, scope)
        if not len(steps):
            return []
        ops = _ops_inside(tables, steps)
        if not ops.height:
            return []
        repeats = _repeats(ops, len(steps))
        launches = _launches(tables, steps) if scope.on_device else None
        names = ops["name"] if launches is None else pl.concat([ops["name"], launches["name"]])
        batched = names.filter(names.str.contains(BATCHED))
        calls = ops.height if launches is None else launches.height
        if _is_batched(ops, launches, batched):
            return [self.dismissal(f"the optimizer is batched already ({batched[0][:60]})")]
        if repeats < REPEATS:
            return [self.dismissal(f"no op comes more than {repeats:.0f} times in an optimizer step")]
        cost = _host_cost(ops, steps) if launches is None else _device_cost(tables, launches, scope)
        if not cost:
            return [
                self.dismissal("the optimizer updates parameters one by one, but its calls cost no time to speak of")
            ]
        what = "calls" if launches is None else "launches"
        return [
            self.finding(
                title=f"The optimizer updates parameters one by one: {calls / len(steps):,.0f} {what} a step, "
                f"{percent(scope.share(cost))} of the time goes into making them ({duration(cost)})",
                cost_ns=cost,
                steps=scope.steps,
                location=_location(tables, ops),
                evidence=(
                    Evidence(
                        event=RANGE,
                        ts_ns=int(steps.start[place]),
                        dur_ns=int(steps.end[place] - steps.start[place]),
                        note=f"{ops.filter(pl.col('range') == place).height:,} ops inside",
                    )
                    for place in np.argsort(steps.start - steps.end, kind="stable")[:3]
                ),
            )
        ]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """Optimizer steps lose a part of the time that making the calls takes."""
        scope = scope_of(tables)
        steps = _optimizer_steps(tables, scope)
        graph = graph_of(tables)
        part = 1.0
        if not scope.on_device:
            part = min(1.0, finding.cost_ns / max(steps.total_ns, 1))
        worst, expected, best = (1 - part * (1 - left) for left in LEFT)
        share = f"{LEFT[2] * 100:.0f} to {LEFT[0] * 100:.0f} %"
        assumption = f"{share} of the time for making the optimizer's calls stay with one call for many parameters"
        return (removing(graph, graph.main, steps.start, steps.end, (worst, expected, best), assumption),)

    def fix(self, finding: Finding) -> Fix:
        """A fused or foreach optimizer."""
        return Fix(
            summary="Pass fused=True to the optimizer (or foreach=True where it has no fused form), and merge "
            "parameter groups with equal settings. Little to win where a few large parameters dominate; foreach needs "
            "memory for temporary copies.",
            snippet=SNIPPET,
        )


def _optimizer_steps(tables: Tables, scope: Scope) -> Painted:
    """Spans of optimizer steps in the window: marked by torch, else measured by the capture."""
    marks = tables["annotations"].filter(~pl.col("on_device") & pl.col("name").cast(pl.String).str.starts_with(RANGE))
    start, length = marks["ts_ns"], marks["dur_ns"]
    if not marks.height and tables.trace.has("phases"):
        phases = tables["phases"].filter(pl.col("phase") == "optimizer")
        start, length = phases["start_ns"], phases["dur_ns"]
    spans = paint(start.to_numpy(), (start + length).to_numpy(), 0)
    return spans.take((spans.start >= scope.start_ns) & (spans.end <= scope.end_ns))


def _which(spans: Painted, position: pl.Series) -> pl.Series:
    """Index of the span that each position lies in, or null."""
    where = position.to_numpy()
    index = np.searchsorted(spans.start, where, side="right") - 1
    inside = (index >= 0) & (where < spans.end[np.maximum(index, 0)])
    return pl.Series(np.where(inside, index, -1), dtype=pl.Int64).replace(-1, None)


def _ops_inside(tables: Tables, steps: Painted) -> pl.DataFrame:
    """Ops that call no op themselves, inside optimizer steps, with the index of their step (``range``)."""
    ops = tables["ops"].select("event", pl.col("name").cast(pl.String), "thread", "ts_ns", "dur_ns")
    ops = ops.with_columns(range=_which(steps, ops["ts_ns"])).filter(pl.col("range").is_not_null())
    ops = ops.filter(~pl.col("name").str.starts_with(RANGE)).sort(
        "thread", "ts_ns", pl.col("dur_ns"), descending=[False, False, True]
    )
    following = pl.col("ts_ns").shift(-1).over("thread")
    return ops.with_columns(leaf=(following >= pl.col("ts_ns") + pl.col("dur_ns")).fill_null(True))


def _repeats(ops: pl.DataFrame, steps: int) -> float:
    """How often the most frequent op comes in one optimizer step."""
    counts = ops.group_by("name").len()["len"]
    return float(str(counts.max())) / steps


def _launches(tables: Tables, steps: Painted) -> pl.DataFrame:
    work = tables["device_work"].filter(pl.col("launch_ts_ns").is_not_null() & (pl.col("kind") != "collective"))
    work = work.with_columns(pl.col("name").cast(pl.String), range=_which(steps, work["launch_ts_ns"]))
    return work.filter(pl.col("range").is_not_null())


def _is_batched(ops: pl.DataFrame, launches: pl.DataFrame | None, batched: pl.Series) -> bool:
    if not len(batched):
        return False
    if launches is not None:
        return int(launches["name"].str.contains(BATCHED).sum()) >= BATCHED_SHARE * launches.height
    # On the CPU foreach falls back to one op per parameter; only fused is one pass.
    return bool(ops["name"].str.contains(r"^aten::_fused_").any())


def _host_cost(ops: pl.DataFrame, steps: Painted) -> int:
    """Time of the steps outside ops, and the fixed cost of every call, less what a fused optimizer leaves of them."""
    leaves = ops.filter("leaf")
    fixed = pl.min_horizontal("dur_ns", pl.col("dur_ns").quantile(SHORTEST_QUANTILE).over("name"), pl.lit(DISPATCH_NS))
    inside = paint(leaves["ts_ns"].to_numpy(), (leaves["ts_ns"] + leaves["dur_ns"]).to_numpy(), 0)
    spent = steps.total_ns - inside.total_ns + float(leaves.select(fixed.sum()).item())
    return round(spent * (1 - _left_by_fused(ops, len(steps))))


def _left_by_fused(ops: pl.DataFrame, steps: int) -> float:
    """Share of calls that a fused optimizer makes as well; the rarest op of the loop counts the parameters."""
    counts = ops.group_by("name").len()["len"]
    parameters = int(str(counts.filter(counts >= REPEATS * steps).min()))
    return min(1.0, FUSED_CALLS * parameters / ops.height)


def _device_cost(tables: Tables, launches: pl.DataFrame, scope: Scope) -> int:
    """Idle time between the first and the last kernel of each optimizer step, as far as launching is the cause."""
    spans = launches.group_by("range").agg(
        pl.col("ts_ns").min().alias("start"), (pl.col("ts_ns") + pl.col("dur_ns")).max().alias("end")
    )
    spans = spans.sort("start")
    idle = tables["idle_spans"].filter(pl.col("cause").is_in(["launch", "host"])).sort("start_ns")
    begin = idle["start_ns"].to_numpy()
    waits = paint(begin, begin + idle["dur_ns"].to_numpy(), 0)
    start = np.clip(spans["start"].to_numpy(), scope.start_ns, scope.end_ns)
    end = np.clip(spans["end"].to_numpy(), scope.start_ns, scope.end_ns)
    return int(covered(waits, start, end).sum())


def _location(tables: Tables, ops: pl.DataFrame) -> Location | None:
    if not tables.has("op_places"):
        return None
    places = tables["op_places"].select("event", *PLACE)
    return dominant_place(ops.filter("leaf").join(places, on="event"), "dur_ns")
