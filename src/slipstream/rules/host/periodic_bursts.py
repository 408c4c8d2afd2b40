"""HST003: every n-th step takes longer than the others."""

from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, Location, NotEnoughData
from slipstream.rules.places import dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import scope_of
from slipstream.rules.wording import duration, percent, plural
from slipstream.store import Tables

LONGER = 1.25
"""A step this many times as long as the usual one is a burst."""
BURSTS = 3
"""Bursts from which on a period can be told."""
STEPS = 12
"""Steps from which on it is worth looking."""
REGULAR_SHARE = 0.75
"""Share of the steps at the period that must be long."""
EXPLAINED_SHARE = 0.5
"""Share of the excess of all long steps that those at the period must explain."""
SNIPPET = """\
if step % 500 == 0:                                   # less often
    log_histograms(model)
values = loss.detach().to("cpu", non_blocking=True)   # read one step later
executor.submit(torch.save, snapshot(model), path)    # write from another thread or process
# distributed checkpoints: torch.distributed.checkpoint.async_save"""


class PeriodicBursts(Rule):
    """Periodic bursts.

    What it detects
    Among all steps that the capture measured, or the steps of a recording of twelve and more: three and more that
    take at least 1.25 times as long as the usual one, at equal distances. Time in the data loader and in garbage
    collections is taken out, since other rules speak of it. The cost is the excess, spread over all steps; what it
    consists of (Python, read-backs, copies) other rules may tell as well.

    Why it costs time
    Logging, histograms of weights, checkpoints, evaluation on a few batches and the like come every n steps, on the
    training thread, with reads from the device and writes to a disk.

    Fix
    Do it less often, or beside training: asynchronous checkpoints, files written from another thread, values read
    one step later.

    When not to
    Evaluation and checkpoints are part of the job: compare what they cost with what a lost day of training costs.
    An update every n-th micro-batch is a period as well, where steps were counted by micro-batch.

    Source
    PyTorch documentation, "Distributed Checkpoint: async_save".
    """

    code = "HST003"
    name = "periodic bursts"
    needs: ClassVar = {"window": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Look for long steps at equal distances."""
        scope = scope_of(tables)
        steps = _steps(tables)
        if steps.height < STEPS:
            raise NotEnoughData(
                f"{plural(steps.height, 'step')} in this recording are too few to tell a period: record with "
                "`slipstream run`, which measures all steps"
            )
        own = steps["own_ns"].to_numpy()
        usual = float(np.median(own))
        numbers = steps["number"].to_numpy()
        found = _period(numbers, own - usual, usual)
        if found is None:
            return []
        period, phase = found
        long = (own >= LONGER * usual) & (numbers % period == phase)
        share = float((own[long] - usual).sum()) / float(steps["dur_ns"].sum())
        rows = steps.filter(pl.Series(long)).sort("own_ns", descending=True)
        return [
            self.finding(
                title=f"Every {period}th step takes {duration(round(float(np.median(own[long]))))} instead of "
                f"{duration(round(usual))}: {percent(share)} of the time goes into something periodic",
                cost_ns=round(share * scope.length_ns),
                steps=scope.steps,
                location=_location(rows),
                evidence=(
                    Evidence(
                        event=f"step {row['number']}",
                        ts_ns=cast(int, row["start_ns"]),
                        dur_ns=cast(int, row["dur_ns"]),
                        note=f"{duration(round(row['own_ns'] - usual))} more than usual",
                    )
                    for row in rows.head(3).iter_rows(named=True)
                ),
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Less often, or beside training."""
        return Fix(
            summary="Find what runs in these steps (logging, histograms, checkpoints, evaluation) and do it less "
            "often, or beside training: asynchronous checkpoints, files written by another thread, values read one "
            "step later. Not where it is part of the job and worth its time.",
            snippet=SNIPPET,
        )


def _steps(tables: Tables) -> pl.DataFrame:
    """Undisturbed steps: number, start_ns, dur_ns, and own_ns without the loader and the collector."""
    if not tables.trace.has("job_steps"):
        steps = tables["steps"].filter(~pl.col("inferred")).sort("start_ns")
        return steps.select("number", "start_ns", "dur_ns", own_ns="dur_ns")
    usual = pl.col("phase").cast(pl.String) == "plain"
    steps = tables["job_steps"].filter(usual).sort("number")
    if tables.trace.has("gc_pauses"):
        pauses = tables["gc_pauses"].group_by("step").agg(pause_ns=pl.col("dur_ns").sum())
        steps = steps.join(pauses, left_on="number", right_on="step", how="left")
    else:
        steps = steps.with_columns(pause_ns=0)
    own = pl.col("dur_ns") - pl.col("loader_ns").fill_null(0) - pl.col("pause_ns").fill_null(0)
    return steps.with_columns(own_ns=own.clip(lower_bound=0))


def _period(numbers: npt.NDArray[np.int64], excess: npt.NDArray[np.float64], usual: float) -> tuple[int, int] | None:
    """The shortest period, and its phase, at which nearly all steps are long and that explains most of the excess.

    Args:
        numbers: of the steps.
        excess: ns by which each is longer than the usual one.
        usual: ns that the usual one takes.
    """
    long = excess >= (LONGER - 1) * usual
    if long.sum() < BURSTS:
        return None
    ordered = numbers[long]
    candidates = np.unique(np.concatenate([np.diff(ordered), ordered[2:] - ordered[:-2]]))
    for period in candidates[candidates >= 2].tolist():
        phases, counts = np.unique(ordered % period, return_counts=True)
        phase = int(phases[np.argmax(counts)])
        members = numbers % period == phase
        bursts = int((members & long).sum())
        explained = excess[members & long].sum() >= EXPLAINED_SHARE * excess[long].sum()
        if bursts >= BURSTS and bursts >= REGULAR_SHARE * members.sum() and explained:
            return period, phase
    return None


def _location(rows: pl.DataFrame) -> Location | None:
    """Where these steps end."""
    if "file" not in rows.columns:
        return None
    known = rows.with_columns(precision=pl.when(pl.col("line").is_not_null()).then(pl.lit("statement")))
    return dominant_place(known, "dur_ns")
