"""What is known of a job's steps where no window of it was recorded."""

from collections.abc import Sequence

import polars as pl

from slipstream.reports.units import duration, percent, plural
from slipstream.store import DECLARED, RunFolder

_UNDISTURBED = ("plain", "recorded")
"""Phases of steps that are what training usually is; warm-up and line tracing are slower."""


def step_facts(folder: RunFolder) -> str | None:
    """Steps, their median and the share of waiting for data, in one sentence.

    Args:
        folder: a run folder; of several ranks the first with measured steps speaks.
    Returns:
        None where no step was measured.
    """
    frames = (_steps(folder, rank) for rank in folder.ranks())
    steps = next((frame for frame in frames if frame is not None and frame.height), None)
    if steps is None:
        return None
    usual = steps.filter(pl.col("phase").cast(pl.String).is_in(_UNDISTURBED))
    # A job of a few steps may end during its warm-up: then these are all there is to tell.
    which, told = (usual, "") if usual.height else (steps, ", all of them warm-up")
    lengths: Sequence[int] = which["dur_ns"].sort().to_list()
    median = lengths[(len(lengths) - 1) // 2]
    waiting = sum(which["loader_ns"].to_list()) / max(sum(lengths), 1)
    return (
        f"{plural(steps.height, 'step')} seen{told}, median {duration(median)}; {percent(waiting)} of the time "
        "waiting for the data loader"
    )


def _steps(folder: RunFolder, rank: int) -> pl.DataFrame | None:
    path = folder.rank(rank) / "job_steps.parquet"
    return DECLARED["job_steps"].frame(pl.read_parquet(path)) if path.is_file() else None
