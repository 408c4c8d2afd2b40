"""CPL001: the compiler works again in the middle of training."""

import re
from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.painting import covered
from slipstream.analysis.places import Places
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PLACE, PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import spans_of
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

COMPILE = r"_compile\.compile_inner|^entire_(frame|backward)_compile|^compile_fx|^OutputGraph\.call_user_compiler"
"""Marks of torch.compile at work; older versions draw them as annotations, newer ones as ops."""
COMPILE_ID = re.compile(r"compile_id[=:] ?\[?(\d+)/(\d+)")
"""Frame, and how often it was compiled before."""
CAUSES = ("compile", "host", "launch")
"""Causes of idle time under which the compiler's work appears."""
SNIPPET = """\
model = torch.compile(model, dynamic=True)             # sizes that vary become symbols
torch._dynamo.mark_dynamic(inputs, 1)                  # or this dimension only
torch._dynamo.config.error_on_recompile = True         # while looking for what changes
# TORCH_LOGS=recompiles python train.py                # tells the guard that failed"""


class RecompilesInSteadyState(Rule):
    """Recompiles in steady state.

    What it detects
    Work of torch.compile during the recorded steps that is not the first compilation of its frame (by the compile
    id where it is recorded, else because it is not in the first recorded step). The cost is its time on the main
    thread; on a device the idle time meanwhile. Which guard failed is not in a recording.

    Why it costs time
    A compiled frame holds for the shapes, types and Python values it was compiled for. Another value makes a guard
    fail, and everything from tracing to code generation runs again: seconds to minutes. After eight variants of a
    frame the compiler gives up on it.

    Fix
    Let sizes that vary be symbols (`dynamic=True`, `mark_dynamic`), pad to a few sizes, and keep Python numbers that
    change in every step out of compiled code (as tensors instead). `TORCH_LOGS=recompiles` names the guard.

    When not to
    A few recompilations at the beginning (the last, smaller batch of an epoch; evaluation) are normal and end by
    themselves. Code for symbolic sizes can be slower than code for fixed ones.

    Source
    PyTorch documentation, "torch.compile: recompilation" and "Dynamic shapes".
    """

    code = "CPL001"
    name = "recompiles in steady state"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up the compiler's work in the window."""
        scope = scope_of(tables)
        rows = _compilations(tables, scope)
        if not rows.height:
            return []
        rows = rows.with_columns(cost_ns=_lost(tables, scope, rows))
        cost = int(rows["cost_ns"].sum())
        told = f"torch.compile worked {per_step(rows.height, scope.steps, 'time')} ({duration(cost)})"
        if not _again(tables, scope, rows):
            return [self.dismissal(f"{told}, on frames that it had not compiled before: record after the warm-up")]
        places = Places(tables).around(rows["thread"].to_numpy(), rows["ts_ns"].to_numpy()).select(PLACE)
        rows = rows.with_columns(places)
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Symbols instead of variants."""
        return Fix(
            summary="Mark sizes that vary as dynamic, pad to a few sizes, keep changing Python numbers out of compiled "
            "code; TORCH_LOGS=recompiles names the guard that failed. A few recompilations at the beginning end by "
            "themselves.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        return self.finding(
            title=f"torch.compile compiles again during training: {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'compilation')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{duration(row['cost_ns'])} lost",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _compilations(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Outermost marks of the compiler in the window, by thread: name, thread, ts_ns, dur_ns, step."""
    within = pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    named = pl.col("name").cast(pl.String).str.contains(COMPILE)
    columns = (pl.col("name").cast(pl.String), "thread", "ts_ns", "dur_ns")
    rows = pl.concat(
        [
            tables["ops"].filter(within & named).select(columns),
            tables["annotations"].filter(within & named & ~pl.col("on_device")).select(columns),
        ]
    ).sort("thread", "ts_ns", "dur_ns", descending=[False, False, True])
    reached = (pl.col("ts_ns") + pl.col("dur_ns")).cum_max().shift(1).over("thread")
    rows = rows.filter((pl.col("ts_ns") >= reached).fill_null(True) & (pl.col("dur_ns") > 0))
    steps = tables["steps"].select(step="number", step_ns="start_ns").sort("step_ns")
    return rows.sort("ts_ns").join_asof(steps, left_on="ts_ns", right_on="step_ns")


def _lost(tables: Tables, scope: Scope, rows: pl.DataFrame) -> pl.Series:
    start = rows["ts_ns"].to_numpy()
    end = start + rows["dur_ns"].to_numpy()
    if not scope.on_device:
        mine = rows.select(pl.when(pl.col("thread").eq_missing(pl.lit(scope.main_thread))).then("dur_ns").otherwise(0))
        return mine.to_series()
    idle = spans_of(tables["idle_spans"].filter(pl.col("cause").is_in(CAUSES)).sort("start_ns"), "start_ns")
    # Threads may compile side by side: what one of them is given, the others are not.
    reached = np.maximum.accumulate(end)
    begin = np.maximum(start, np.concatenate([start[:1], reached[:-1]]))
    return pl.Series(covered(idle, begin, np.maximum(begin, end)), dtype=pl.Int64)


def _again(tables: Tables, scope: Scope, rows: pl.DataFrame) -> bool:
    """Whether any of it is not the first compilation of its frame."""
    marks = tables["annotations"].filter(pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns))
    names = marks.filter(pl.col("name").cast(pl.String).str.contains("compile_id", literal=True))["name"].unique()
    ids = [found for name in names.cast(pl.String) for found in [COMPILE_ID.search(name)] if found]
    if ids:
        return any(int(found[2]) > 0 for found in ids)
    first = tables["steps"]["number"].min()
    return bool((rows["step"] > first).fill_null(False).any()) if first is not None else False
