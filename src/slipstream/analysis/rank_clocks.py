"""How the clocks of several ranks stand to each other, told by the collectives that they took part in together.

A collective in which every rank needs the data of every other one ends everywhere at the same moment, up to the last
transfer; when it *begins* tells who came late, not what the clock says. One-sided operations (broadcast, send, ...)
may be long over on one rank when another begins, and are left out.
"""

import itertools
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.model import NotEnoughData
from slipstream.stats import robust_line
from slipstream.store import Trace

Longs = npt.NDArray[np.int64]

ONE_SIDED = ("broadcast", "send_recv", "reduce", "gather", "scatter")
FEWEST = 3
MOST_DRIFT_PPM = 500.0
"""Clocks are kept within this rate of each other (the most by which NTP slews one); more is a wrong match."""
LAGS = 64
"""By how many collectives the order is shifted to see whether it would fit as well."""
CLEARLY = 2.0
"""How many times worse every shifted order must fit."""


class ClockFit(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's clock against that of the first rank. For the first itself all differences are 0."""

    rank: int | None
    """None: the recording does not tell"""
    shift_ns: int
    """position in this rank's trace less the position in the first one's of the same moment, at ``reference_ns``"""
    offset_ns: int | None
    """how far this rank's clock is ahead at ``reference_ns``; None where one of the traces tells no absolute time"""
    reference_ns: int
    """position in the first rank's trace: the middle of the matched collectives"""
    drift_ppm: float
    """how much faster this rank's clock runs"""
    drift_low_ppm: float
    drift_high_ppm: float
    """limits of the 95 % interval: from below to above 0, no drift is shown, and none is reckoned with"""
    residual_ns: int
    """median of what is left between the ends of a collective on both ranks, without sign"""
    residual_p95_ns: int
    """the same for the 95th percentile"""
    matched: int
    """collectives found on both ranks"""
    matched_by: Literal["itself", "sequence", "order"]
    """number in the process group, or their order in it where numbers are not told"""

    @property
    def drift_shown(self) -> bool:
        """Whether the interval of the drift excludes 0."""
        return self.drift_low_ppm > 0 or self.drift_high_ppm < 0

    def to_first(self, position: npt.ArrayLike) -> Longs:
        """Positions in the first rank's trace at the moments of positions in this one's.

        Args:
            position: ns.
        """
        since = np.asarray(position, np.int64) - self.shift_ns - self.reference_ns
        rate = 1 + self.drift_ppm / 1e6 if self.drift_shown else 1.0
        return self.reference_ns + np.rint(since / rate).astype(np.int64)


def align(traces: Sequence[Trace]) -> list[ClockFit]:
    """Fit the clock of every rank against that of the first.

    Args:
        traces: one per rank of one run, recorded at the same time; at least one.
    Returns:
        One fit per trace, in their order.
    Raises:
        NotEnoughData: a rank shares fewer than three collectives with the first, or they cannot be told apart.
    """
    ends = [_ends(trace) for trace in traces]
    return [_itself(traces[0], ends[0])] + [
        _fit(traces[0], ends[0], trace, mine) for trace, mine in zip(traces[1:], ends[1:], strict=True)
    ]


def _ends(trace: Trace) -> pl.DataFrame:
    """Two-sided collectives that were timed, in order: what they are matched by, and when they ended."""
    rows = trace.collectives.join(trace.kernels.select("event", "name", "ts_ns", "dur_ns"), on="event")
    operation = pl.col("operation").cast(pl.String)
    rows = rows.filter(~operation.is_in(ONE_SIDED).fill_null(False) & (pl.col("dur_ns") > 0))
    return rows.select(
        "group_ranks",
        pl.col("group_name").cast(pl.String),
        pl.coalesce(operation, pl.col("name").cast(pl.String)).alias("operation"),
        "sequence",
        (pl.col("ts_ns") + pl.col("dur_ns")).alias("end"),
    ).sort("end", maintain_order=True)


_ORDER = ("group_ranks", "group_name", "operation")
_SEQUENCE = (*_ORDER, "sequence")


def _matched(first: pl.DataFrame, mine: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Ends of the same collectives (``end`` and ``mine``) with their ``key``, in order within each.

    Several of one key belong together in their order, if there are as many on both ranks.
    """
    sides = [
        rows.with_columns(pl.int_range(pl.len()).over(key).alias("place"), pl.len().over(key).alias("count"))
        for rows in (first, mine.rename({"end": "mine"}))
    ]
    on = (*key, "place", "count")
    return sides[0].join(sides[1].select(*on, "mine"), on=on, nulls_equal=True).sort(*key, "place")


def _fit(origin: Trace, first: pl.DataFrame, trace: Trace, mine: pl.DataFrame) -> ClockFit:
    who = f"rank {trace.source.rank}" if trace.source.rank is not None else trace.source.path
    numbered = first.drop_nulls("sequence"), mine.drop_nulls("sequence")
    # Where numbers are told, order must not be asked: it would pair recordings of different moments.
    by: Literal["sequence", "order"] = "sequence" if all(rows.height for rows in numbered) else "order"
    both = _matched(*numbered, _SEQUENCE) if by == "sequence" else _matched(first, mine, _ORDER)
    if both.height < FEWEST:
        raise NotEnoughData(f"the clock of {who} cannot be aligned: {_why(first, mine, both.height, by)}")
    if by == "order":
        _check_order(both, who)
    ends = both["end"].to_numpy()
    differences = both["mine"].to_numpy() - ends
    reference, shift = int(np.median(ends)), int(np.median(differences))
    if np.ptp(ends) == 0:
        raise NotEnoughData(f"the clock of {who} cannot be aligned: all collectives end at one moment")
    line = robust_line(ends - reference, differences - shift)
    drift, low, high = (1e6 * slope for slope in (line.slope, line.slope_low, line.slope_high))
    if low > MOST_DRIFT_PPM or high < -MOST_DRIFT_PPM:
        raise NotEnoughData(
            f"the clock of {who} cannot be aligned: it would run {drift:+.0f} ppm off, which no clock does; "
            "these are not recordings of the same moments"
        )
    shown = low > 0 or high < 0
    left = differences - shift - (line.slope if shown else 0.0) * (ends - reference)
    within = float(np.median(left))
    residuals = np.abs(left - within)
    shift += round(within)
    return ClockFit(
        rank=trace.source.rank,
        shift_ns=shift,
        offset_ns=_clock_offset(origin, trace, shift),
        reference_ns=reference,
        drift_ppm=drift,
        drift_low_ppm=low,
        drift_high_ppm=high,
        residual_ns=round(float(np.median(residuals))),
        residual_p95_ns=round(float(np.quantile(residuals, 0.95))),
        matched=both.height,
        matched_by=by,
    )


def _itself(trace: Trace, ends: pl.DataFrame) -> ClockFit:
    return ClockFit(
        rank=trace.source.rank,
        shift_ns=0,
        offset_ns=_clock_offset(trace, trace, 0),
        reference_ns=int(np.median(ends["end"].to_numpy())) if ends.height else 0,
        drift_ppm=0.0,
        drift_low_ppm=0.0,
        drift_high_ppm=0.0,
        residual_ns=0,
        residual_p95_ns=0,
        matched=ends.height,
        matched_by="itself",
    )


def _clock_offset(first: Trace, trace: Trace, shift: int) -> int | None:
    if first.source.origin_ns is None or trace.source.origin_ns is None:
        return None
    return int(trace.source.origin_ns) - int(first.source.origin_ns) + shift


def _why(first: pl.DataFrame, mine: pl.DataFrame, matched: int, by: str) -> str:
    if not first.height or not mine.height:
        return (
            "both ranks need timed collectives in which all take part (all_reduce, all_gather, reduce_scatter, "
            f"all_to_all); the first rank has {first.height}, this one {mine.height}"
        )
    if matched:
        return f"only {matched} collectives are on both ranks, and {FEWEST} are needed"
    if by == "sequence":
        return "no collective has the same process group and sequence number on the first rank and on this one"
    counts = [dict(rows.group_by("operation").len().iter_rows()) for rows in (first, mine)]
    words = ", ".join(f"{name} {counts[0].get(name, 0)} and {counts[1].get(name, 0)}" for name in sorted(counts[0]))
    return (
        f"no collectives match: {words} on the first rank and on this one; without sequence numbers "
        "the same process group needs as many on both"
    )


def _check_order(both: pl.DataFrame, who: str) -> None:
    """Refuse an order that would fit about as well if one rank had begun to record some collectives later.

    Raises:
        NotEnoughData: it does.
    """
    given = _misfit(both["end"].to_numpy(), both["mine"].to_numpy())
    others = {}
    for lag in itertools.chain(range(1, LAGS + 1), range(-1, -LAGS - 1, -1)):
        moved = both.select("end", pl.col("mine").shift(-lag).over(_ORDER)).drop_nulls()
        if moved.height >= max(2, both.height / 2):  # a few fit by chance
            others[lag] = _misfit(*moved.to_numpy().T)
    best = min(others, key=others.__getitem__, default=None)
    if best is not None and others[best] <= CLEARLY * given:
        raise NotEnoughData(
            f"the clock of {who} cannot be aligned: sequence numbers are not told, and the order of its "
            f"collectives fits as well or nearly so when it is shifted by {abs(best)}"
        )


def _misfit(ends: Longs, mine: Longs) -> float:
    """Upper quartile of what a common offset and a drift within reason leave, ns."""
    differences = (mine - ends).astype(np.float64)
    order = np.argsort(ends)
    third = max(1, len(order) // 3)
    early, late = order[:third], order[-third:]
    time = float(np.median(ends[late]) - np.median(ends[early]))
    slope = (np.median(differences[late]) - np.median(differences[early])) / time if time else 0.0
    differences -= np.clip(slope, -MOST_DRIFT_PPM / 1e6, MOST_DRIFT_PPM / 1e6) * (ends - ends[order[0]])
    return float(np.quantile(np.abs(differences - np.median(differences)), 0.75))
