"""CMP005: convolution algorithms are tried out again and again."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.places import PLACE, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import costliest, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

CONVOLUTION = r"(?i)conv|miopen|cudnn"
AROUND = r"(?i)nchw|nhwc_?(to|2)|transpose|reduc|splitk|split_k|fill|cast|pad|elementwise|copy"
"""Kernels around a convolution: layouts turned, parts added up."""
VARIANTS = 5
"""Convolution kernels of different names within one call from which on variants are being tried: a backward call needs
two itself, one for the input and one for the weights."""
STEPS = 2
SNIPPET = """\
torch.backends.cudnn.benchmark = False         # where shapes change from batch to batch
# or few shapes: pad, crop or bucket images, and drop the smaller last batch
loader = DataLoader(dataset, batch_size=64, drop_last=True)"""


class AutotuneRepeats(Rule):
    """Autotune repeats.

    What it detects
    Calls of convolutions within which five and more convolution kernels of different names ran, in two and more
    steps: the library tries its algorithms for a shape that it has not seen. The time of all these kernels but the
    shortest is counted.

    Why it costs time
    With `cudnn.benchmark` on, every new combination of shapes is tried with all algorithms before one is chosen.
    With images of many sizes that never ends, and slow algorithms with large workspaces are run along with good ones.

    Fix
    Switch `cudnn.benchmark` off where shapes keep changing, or make shapes few: fixed crops, buckets, no smaller last
    batch.

    When not to
    In the first steps it is what the setting is for; then record later. With fixed shapes it pays.

    Source
    PyTorch Performance Tuning Guide, "Enable cuDNN auto-tuner".
    """

    code = "CMP005"
    name = "autotune repeats"
    needs: ClassVar = {"window": (), "ops": (), "device_work": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find calls that ran many variants."""
        scope = device_scope(tables)
        rows = _trials(tables, scope)
        if not rows.height:
            return []
        cost = int(rows["cost_ns"].sum())
        told = f"convolution algorithms are tried {per_step(rows.height, scope.steps, 'time')} ({duration(cost)})"
        if rows["step"].drop_nulls().n_unique() < STEPS:
            return [self.dismissal(f"{told}, in one step only: it may be the first use of these shapes")]
        return [
            self.finding(
                title=f"Convolution algorithms are tried again for new shapes: {percent(scope.share(place.cost_ns))} "
                f"of the time ({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'call')})"
                f"{place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """Few shapes, or no trials."""
        return Fix(
            summary="Set torch.backends.cudnn.benchmark = False where shapes keep changing, or make them few: pad, "
            "crop, drop the smaller last batch. In the first steps trials are what the setting is for.",
            snippet=SNIPPET,
        )


def _trials(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Calls within which many different kernels ran, with the step, ``cost_ns`` and the place."""
    work = tables["device_work"].filter(
        (pl.col("kind") == "kernel")
        & pl.col("op_event").is_not_null()
        & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    )
    ops = window_ops(tables, scope).filter(pl.col("name").str.contains(CONVOLUTION))
    work = work.with_columns(pl.col("name").cast(pl.String)).filter(~pl.col("name").str.contains(AROUND))
    calls = work.group_by("op_event").agg(
        variants=pl.col("name").n_unique(),
        step=pl.col("step_launched").first(),
        cost_ns=pl.col("dur_ns").sum() - pl.col("dur_ns").min(),
    )
    calls = calls.filter(pl.col("variants") >= VARIANTS)
    return calls.join(
        ops.select("event", "name", "ts_ns", "dur_ns", *PLACE), left_on="op_event", right_on="event", how="inner"
    ).sort("ts_ns")
