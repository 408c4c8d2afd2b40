"""Where the step goes: compute, exposed communication, exposed copies, idle by cause. The parts add up."""

import numpy as np
import polars as pl

from slipstream.analysis.busy import layers_of_window
from slipstream.model import CAUSES
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``breakdown``.

    The device's time goes to compute first (kernels other than collectives, fills), then to communication that no
    compute hides, then to copies that nothing hides; the rest is idle, by cause. On CPU training compute is the
    main thread inside ops.

    Raises:
        NotEnoughData: it is not known when the device was busy.
    """
    window = tables.row("window")
    idle = tables["idle_spans"].group_by("cause").agg(pl.col("dur_ns").sum())
    sums = dict(idle.select(pl.col("cause").cast(pl.String), "dur_ns").iter_rows())
    parts = {name: spans.total_ns for name, spans in layers_of_window(tables).items()}
    parts |= {f"idle_{cause}": sums[cause] for cause in CAUSES if sums.get(cause)}
    length = int(str(window["end_ns"])) - int(str(window["start_ns"]))
    steps = window["steps"]
    frame = pl.DataFrame({"part": list(parts), "ns": list(parts.values())}, schema={"part": pl.String, "ns": pl.Int64})
    return frame.with_columns(
        ns_per_step=pl.Series(_per_step(list(parts.values()), int(str(steps)))) if steps else None,
        share=pl.col("ns") / length if length else pl.lit(None, pl.Float64),
    )


def _per_step(parts: list[int], steps: int) -> list[int]:
    """Each part divided by the steps, rounded so that they still add up to the whole divided by the steps."""
    exact = np.array(parts, np.int64)
    whole, rest = exact // steps, exact % steps
    missing = int(exact.sum() // steps - whole.sum())
    whole[np.argsort(-rest, kind="stable")[:missing]] += 1
    return [int(value) for value in whole]
