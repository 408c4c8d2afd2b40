"""Which rows belong to the window."""

import polars as pl

from slipstream.model import NotEnoughData
from slipstream.store import Tables


def window_span(tables: Tables) -> tuple[int, int]:
    """Start and end of the window in ns."""
    window = tables.row("window")
    return int(str(window["start_ns"])), int(str(window["end_ns"]))


def starting_in_window(tables: Tables, rows: pl.DataFrame, position: str = "ts_ns") -> pl.DataFrame:
    """Rows that start in the window; a start at its end does not.

    Args:
        tables: reads window.
        rows: any.
        position: column with the start in ns; rows without one are left out.
    """
    start, end = window_span(tables)
    return rows.filter(pl.col(position).is_between(pl.lit(start), pl.lit(end), closed="left"))


def known_device_work(tables: Tables) -> pl.DataFrame:
    """The table ``device_work``, where it can be trusted to hold what the device did in the window.

    Raises:
        NotEnoughData: there is none, or the host launched kernels that are not in the recording.
    """
    work = tables["device_work"]
    if not work.height:
        raise NotEnoughData(
            "no device work in this recording: where there is a device, record with its activity as well "
            "(ProfilerActivity.CUDA)"
        )
    if tables.row("window")["busy_ns"] is None:
        raise NotEnoughData(
            "kernels that the host launched are not in this recording, so idle time is not known: record again with "
            "the device's activity (ProfilerActivity.CUDA)"
        )
    return work
