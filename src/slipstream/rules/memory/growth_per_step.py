"""MEM005: memory grows from step to step."""

import itertools
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.model import Dismissal, Finding, Fix, NotEnoughData
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import percent, plural, size
from slipstream.store import Tables

SAMPLES = 12
"""Measured steps from which on a trend can be told."""
PARTS = 4
"""Each of so many stretches of the run must lie above the one before."""
GROWTH_SHARE = 0.05
"""Growth over the run from which on it is told; below, it is caches that fill up."""
LASTING = 0.5
"""The second half of the run must grow by at least this part of what the first half grew: a leak does not slow down."""
RISING_STEPS = 3
"""Steps of a recorded window that must all end higher than the one before, where nothing else was measured."""
SNIPPET = """\
total += loss.detach()            # not: total += loss, which keeps the graph of every step
history.append(loss.item())       # not: history.append(loss)
cache = collections.OrderedDict() # caches need a limit"""


class GrowthPerStep(Rule):
    """Growth per step.

    What it detects
    Memory at the ends of steps that keeps growing: each quarter of the run above the one before, by 5 % and more
    over the run, and hardly slower in its second half. Device memory counts where there is a device, else resident
    memory of the process. In recordings of others: allocated bytes at the end of each step, rising every time. It
    costs no time by itself, so it is told as a risk among what was looked at, never as a finding.

    Why it costs time
    At some point the job dies with an out-of-memory error, often hours into the run, or the machine begins to swap.

    Fix
    Find what is kept: a loss added up with its graph, outputs in a list, hooks that store activations, a cache
    without a limit. `slipstream memory` or `torch.cuda.memory._record_memory_history` tell which line allocates.

    When not to
    Caches fill up and stop; memory of the process also grows by fragmentation, by worker processes and by datasets
    that are loaded piece by piece.

    Source
    PyTorch FAQ, "My model reports out of memory: don't accumulate history across your training loop".
    """

    code = "MEM005"
    name = "growth per step"
    needs: ClassVar = {"window": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Look for a lasting rise."""
        scope = scope_of(tables)
        if not tables.trace.has("job_steps"):
            return self._of_window(tables, scope)
        steps = tables["job_steps"].filter(~pl.col("phase").cast(pl.String).is_in(["warmup", "places"]))
        column = "device_allocated_bytes" if scope.on_device else "rss_bytes"
        bytes_ = steps[column].drop_nulls().to_numpy().astype(np.float64)
        if len(bytes_) < SAMPLES:
            raise NotEnoughData(
                f"memory was measured in {plural(len(bytes_), 'step')} only, which show no trend: record a longer run"
            )
        if not _keeps_growing(bytes_):
            return []
        each = (bytes_[-1] - bytes_[0]) / max(1, steps.height - 1)
        return [self._risk(bytes_[0], bytes_[-1], each, plural(steps.height, "step"))]

    def fix(self, finding: Finding) -> Fix:
        """Find what is kept."""
        return Fix(
            summary="Find what is kept from step to step: a loss added up with its graph, outputs in a list, hooks "
            "that store activations, a cache without a limit. Caches that fill up and stop are no leak.",
            snippet=SNIPPET,
        )

    def _of_window(self, tables: Tables, scope: Scope) -> list[Finding | Dismissal]:
        kind = pl.col("device_type") != 0 if scope.on_device else pl.col("device_type") == 0
        rows = tables["memory"].filter(kind & pl.col("allocated_bytes").is_not_null()).sort("ts_ns")
        steps = tables["steps"].select(end_ns=pl.col("start_ns") + pl.col("dur_ns")).sort("end_ns")
        ends = steps.join_asof(rows.select("ts_ns", "allocated_bytes"), left_on="end_ns", right_on="ts_ns")
        bytes_ = ends["allocated_bytes"].drop_nulls().to_numpy().astype(np.float64)
        if len(bytes_) <= RISING_STEPS:
            raise NotEnoughData("memory at the ends of steps is not in this recording: record with `slipstream run`")
        if (np.diff(bytes_) <= 0).any() or bytes_[-1] < (1 + GROWTH_SHARE) * bytes_[0]:
            return []
        each = (bytes_[-1] - bytes_[0]) / (len(bytes_) - 1)
        return [self._risk(bytes_[0], bytes_[-1], each, plural(len(bytes_), "recorded step"))]

    def _risk(self, first: float, last: float, each: float, steps: str) -> Dismissal:
        grown = f", {percent(last / first - 1)} more" if first > 0 else ""
        return self.dismissal(
            f"a risk, no cost of time: memory grew from {size(round(first))} to {size(round(last))} over {steps} "
            f"({size(round(each))} a step{grown}) and keeps growing"
        )


def _keeps_growing(values: npt.NDArray[np.float64]) -> bool:
    """Whether each stretch of the run lies above the one before, the total is worth telling, and it does not slow."""
    middles = [float(np.median(part)) for part in np.array_split(values, PARTS)]
    rising = all(after > before for before, after in itertools.pairwise(middles))
    first, second = middles[1] - middles[0], middles[3] - middles[2]
    return rising and values[-1] >= (1 + GROWTH_SHARE) * values[0] and second >= LASTING * first
