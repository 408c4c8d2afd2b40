"""CMP002: images are turned from one memory layout into the other around convolutions."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import PLACE, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import device_scope
from slipstream.rules.window_ops import costliest, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

CONVERSION = r"(?i)nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw|^batched_transpose_\d"
"""Kernels by which convolution libraries turn one layout into the other."""
SNIPPET = """\
model = model.to(memory_format=torch.channels_last)
images = images.to(device, memory_format=torch.channels_last)"""


class LayoutConversions(Rule):
    """Layout conversions.

    What it detects
    Kernels that turn a tensor from channels-first into channels-last or back (`nchwToNhwc`, `nhwcToNchw`,
    `batched_transpose`), as far as the host waits for the device.

    Why it costs time
    Matrix units convolve in channels-last order. Given channels-first tensors, the library turns each input around,
    convolves, and turns the result back: two passes over memory for every convolution, in the backward pass as well.

    Fix
    Put model and images into `channels_last`; ops in between keep it.

    When not to
    Ops without a channels-last kernel turn tensors back, which costs more than it saves; a few conversions at the
    ends of the network are normal. On devices without matrix units it is slower.

    Source
    PyTorch tutorial "Channels Last Memory Format in PyTorch"; NVIDIA Deep Learning Performance Guide, "Tensor
    Layouts".
    """

    code = "CMP002"
    name = "layout conversions"
    needs: ClassVar = {"window": (), "device_work": ()}
    fix_class = "rounding"
    treatment = "channels_last"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up conversion kernels."""
        scope = device_scope(tables)
        work = tables["device_work"].filter(
            (pl.col("kind") == "kernel") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
        )
        rows = work.with_columns(pl.col("name").cast(pl.String)).filter(pl.col("name").str.contains(CONVERSION))
        if not rows.height:
            return []
        total, waits = int(rows["dur_ns"].sum()), host_waits_ns(tables, scope)
        share = 1.0 if waits is None or waits >= total else waits / total
        rows = rows.with_columns(cost_ns=(pl.col("dur_ns") * share).round().cast(pl.Int64))
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{duration(total)} of layout conversions, but the host does not wait for the {scope.worker}"
                )
            ]
        places = window_ops(tables, scope).select(pl.col("event").alias("op_event"), *PLACE)
        rows = rows.join(places, on="op_event", how="left")
        return [
            self.finding(
                title=f"Turning tensors between channels-first and channels-last takes "
                f"{percent(scope.share(place.cost_ns))} of the time ({duration(place.cost_ns)} in "
                f"{per_step(place.rows.height, scope.steps, 'conversion')}){place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """Channels last from end to end."""
        return Fix(
            summary="Put the model and its images into memory_format=torch.channels_last. Not where ops without such a "
            "kernel sit in between, which turn tensors back, nor on devices without matrix units.",
            snippet=SNIPPET,
        )
