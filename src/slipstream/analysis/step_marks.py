"""Which step a position lies in."""

import numpy as np
import polars as pl

from slipstream.analysis.painting import Longs
from slipstream.store import Tables


def step_at(tables: Tables, position: Longs) -> pl.Series:
    """Number of the step that each position lies in, null outside every step."""
    steps = tables["steps"].sort("start_ns")
    if not steps.height:
        return pl.Series(values=[None] * len(position), dtype=pl.Int64)
    begin = steps["start_ns"].to_numpy()
    index = np.clip(np.searchsorted(begin, position, side="right") - 1, 0, steps.height - 1)
    within = (position >= begin[index]) & (position < begin[index] + steps["dur_ns"].to_numpy()[index])
    number = steps["number"].gather(index.tolist())
    return pl.select(pl.when(pl.Series(within)).then(number)).to_series()
