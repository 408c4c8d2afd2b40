"""CMP007: an op takes several times as long as its arithmetic and its bytes need."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.model.peaks import peaks_of
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

ACHIEVABLE = 0.7
"""Share of a peak that good kernels reach where the hardware table tells no better."""
FAR = 0.4
"""Below this part of what is achievable an op is far from its roof; tuned kernels differ by less."""
LARGE_NS = 50_000
"""Shorter calls are set by launches, ramps and tails, not by a roof."""
SNIPPET = """\
# sizes that fill the device: multiples of 8 (16-bit) or 64, batches that make more than one wave of blocks
# slipstream query trace.json "SELECT * FROM roofline WHERE roofline_share < 0.3 ORDER BY work_ns DESC"
model.compile(mode="max-autotune")      # lets the compiler choose among kernels for these shapes"""


class KernelBelowItsRoof(Rule):
    """Kernels far below their roof.

    What it detects
    Ops with a known formula (products, convolutions, attention, normalisation, elementwise) of 50 us and more a call
    that reach less than 40 % of what is achievable: the least time that the device's peak of arithmetic or of memory
    allows, at the share of the peak that good kernels reach. What they take longer is counted, as far as the host
    waits for the device.

    Why it costs time
    Odd sizes, matrices too thin or too few blocks leave most multiprocessors idle; a kernel chosen for other shapes,
    or one in the wrong precision, wastes the rest.

    Fix
    Sizes that suit the device (multiples of 8, larger batches), a layout or precision that has better kernels, an op
    that does the whole thing (fused attention, fused normalisation), or `max-autotune`, which measures several.

    When not to
    Operations and bytes are counted from shapes by textbook formulas: an algorithm that reads data twice, or sparse
    inputs, have another roof. Peaks are those of the data sheet at full clock.

    Source
    Williams, Waterman, Patterson, "Roofline", 2009; the table `roofline`, whose peaks name their sources.
    """

    code = "CMP007"
    name = "kernel below its roof"
    needs: ClassVar = {"window": (), "device_work": (), "roofline": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Hold every op against its roof."""
        scope = device_scope(tables)
        known = tables["roofline"].filter(pl.col("roofline_share").is_not_null())
        if not known.height:
            reason = tables["roofline"]["reason"].drop_nulls()
            raise NotEnoughData(f"no op has a known roof: {reason[0] if len(reason) else 'no shapes'}")
        rows = _below(known, tables)
        if not rows.height:
            return []
        cost, waits = int(rows["cost_ns"].sum()), host_waits_ns(tables, scope)
        told = f"{rows['name'][0]} reaches {percent(float(rows['roofline_share'][0]))} of what the device allows"
        if waits is not None and waits < cost:
            if not waits:
                return [self.dismissal(f"{told}, but the host does not wait for the {scope.worker}")]
            cost = waits
        return [self._finding(rows, cost, told, scope)]

    def fix(self, finding: Finding) -> Fix:
        """Other sizes, or another kernel."""
        return Fix(
            summary="Choose sizes that fill the device, a precision or layout with better kernels, a fused op, or let "
            "max-autotune measure several. Not where the algorithm reads data more than once: its roof is another.",
            snippet=SNIPPET,
        )

    def _finding(self, rows: pl.DataFrame, cost: int, told: str, scope: Scope) -> Finding:
        return self.finding(
            title=f"{told} ({per_step(int(rows['count'].sum()), scope.steps, 'call')} of "
            f"{rows['name'].n_unique()} ops like that): {percent(scope.share(cost))} of the time beyond what good "
            "kernels would take",
            cost_ns=cost,
            steps=scope.steps,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=scope.start_ns,
                    dur_ns=row["work_ns"],
                    note=f"{row['input_dims']}: all {row['count']} calls, {duration(row['roof_ns'])} at the roof, "
                    f"bound by {row['bound']}",
                )
                for row in rows.head(3).iter_rows(named=True)
            ),
        )


def _below(known: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Ops far below their roof with ``roof_ns`` and ``cost_ns``, the costliest first."""
    peaks = peaks_of(tables.source.device)
    best = peaks.achievable_bf16_share if peaks is not None else None
    sixteen = pl.col("precision").cast(pl.String).is_in(["bf16", "fp16"]) & (
        pl.col("bound").cast(pl.String) == "compute"
    )
    achievable = pl.when(sixteen & pl.lit(best is not None)).then(pl.lit(best or ACHIEVABLE)).otherwise(ACHIEVABLE)
    rows = known.with_columns(
        pl.col("name", "bound").cast(pl.String),
        achievable=achievable,
        roof_ns=(pl.col("roofline_share") * pl.col("work_ns")).round().cast(pl.Int64),
    )
    rows = rows.filter(
        (pl.col("roofline_share") < FAR * pl.col("achievable")) & (pl.col("work_ns") >= LARGE_NS * pl.col("count"))
    )
    saved = pl.col("work_ns") - pl.col("roof_ns") / pl.col("achievable")
    return rows.with_columns(cost_ns=saved.round().cast(pl.Int64)).sort("cost_ns", "name", descending=[True, False])
