"""CPL003: compiling took a large part of the run."""

from typing import ClassVar, cast

import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.rule import Rule
from slipstream.rules.scope import scope_of
from slipstream.rules.wording import duration, percent, plural
from slipstream.store import Tables

COMPILED = r"Torch-Compiled Region|CompiledFunction|^## Call CompiledFxGraph|^triton_"
"""Rows that compiled code leaves."""
USUAL = 3.0
"""A step that takes this many times the usual one has compiled something, or set something up."""
LATER = ("plain", "recorded")
FEWEST = 5
SNIPPET = """\
# short runs: leave torch.compile out, or
torch._inductor.config.fx_graph_cache = True     # keeps what was compiled on disk (the default since 2.6)
for layer in model.layers:                       # layers that repeat share one compilation
    layer.compile()"""


class CompileNeverPays(Rule):
    """Compile never pays back.

    What it detects
    A job whose steps run compiled code, and whose first steps took several times as long as later ones: what they
    took longer, as a share of all measured steps. By how much compiled steps are faster is not in a recording; the
    finding says what they would have to save.

    Why it costs time
    Compiling costs seconds to minutes at the first call of every graph and shape. It pays over thousands of steps; a
    run of a few hundred may end before.

    Fix
    Leave `torch.compile` out of short runs, keep compiled code on disk between runs, or compile the layers that
    repeat, which share one compilation.

    When not to
    In a short trial of a long run: there it pays later. First steps also load libraries, tune kernels and fill
    caches, all of which is counted here.

    Source
    PyTorch documentation, "torch.compile: compile time"; "Reducing torch.compile cold start time with regional
    compilation".
    """

    code = "CPL003"
    name = "compile never pays back"
    needs: ClassVar = {"window": (), "ops": (), "job_steps": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare the first steps of the job with later ones."""
        scope = scope_of(tables)
        names = pl.concat([tables[name]["name"].cast(pl.String) for name in ("ops", "annotations", "kernels")])
        if not names.str.contains(COMPILED).any():
            return []
        steps = tables["job_steps"].sort("number").with_columns(pl.col("phase").cast(pl.String))
        later = steps.filter(pl.col("phase").is_in(LATER))["dur_ns"]
        if len(later) < FEWEST:
            raise NotEnoughData(f"{plural(len(later), 'step')} after the warm-up: a longer run tells what steps take")
        usual = cast(float, later.median())
        first = steps.filter((pl.col("phase") == "warmup") & (pl.col("dur_ns") > USUAL * usual))
        spent = int(first["dur_ns"].sum() - round(usual) * first.height)
        total = int(steps["dur_ns"].sum())
        if spent <= 0 or not total:
            return []
        share = spent / total
        needed = spent / steps.height
        told = (
            f"The first steps took {duration(spent)} longer than later ones, {percent(share)} of the "
            f"{plural(steps.height, 'step')} measured: compiling pays if it saves {duration(round(needed))} or more of "
            f"each ({percent(needed / usual)} of a step)"
        )
        return [
            self.finding(
                title=told,
                cost_ns=round(share * scope.length_ns),
                steps=scope.steps,
                evidence=(
                    Evidence(event=f"step {row['number']}", ts_ns=row["start_ns"], dur_ns=row["dur_ns"])
                    for row in first.sort("dur_ns", descending=True).head(3).iter_rows(named=True)
                ),
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Not for short runs."""
        return Fix(
            summary="Leave torch.compile out of runs this short, keep compiled code on disk, or compile the layers "
            "that repeat. In a short trial of a long run it pays later.",
            snippet=SNIPPET,
        )
