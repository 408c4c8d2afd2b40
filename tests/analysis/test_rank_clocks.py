"""Clocks of several ranks, against clocks that are known."""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import slipstream
from slipstream.analysis.rank_clocks import align
from slipstream.model import NotEnoughData
from slipstream.store import Trace
from support.tables import make_trace, span

ORIGIN = 1_719_853_884_000_000_000
OFFSET, DRIFT_PPM = 3_712_345_678, 20.0
CORPUS = os.environ.get("SLIPSTREAM_CORPUS")


def moments(count: int, seconds: float = 20.0, seed: int = 0) -> list[int]:
    """When collectives end, in ns of true time; as irregular as steps are."""
    chance = random.Random(seed)
    pace = seconds * 1e9 / count
    return [int((number + 0.3 * chance.random()) * pace) + 1_000_000 for number in range(count)]


def recorded(
    ends: Sequence[int],
    rank: int,
    *,
    offset: int = 0,
    drift_ppm: float = 0.0,
    late_ns: int = 0,
    numbered: bool = True,
    leave_out: Sequence[int] = (),
    **collective: Any,
) -> Trace:
    """What a rank whose clock is off writes down; positions count from its own first event, as in a file.

    Collectives begin up to ``late_ns`` before they end, and their ends are seen a few microseconds late.
    """
    chance = random.Random(100 + rank)
    kernels, collectives, begun = [], [], 400_000 * rank
    for number, end in enumerate(ends):
        seen = end + offset + drift_ppm * 1e-6 * (end - ends[0]) + chance.expovariate(1 / 3_000)
        start = seen - 50_000 - late_ns * chance.random()
        if number in leave_out:
            continue
        ts_ns, dur_ns = round(start) - offset - begun, round(seen) - round(start)
        kernels.append(span("ncclDevKernel_AllReduce", ts_ns, dur_ns, event=number))
        sequence = {"sequence": number} if numbered else {}
        told = {"operation": "all_reduce", "group_name": "0", "group_ranks": "[0, 1]", **collective}
        collectives.append({"event": number, **told, **sequence})
    return with_origin(make_trace(rank=rank, kernels=kernels, collectives=collectives), str(ORIGIN + offset + begun))


def with_origin(trace: Trace, origin_ns: str | None) -> Trace:
    source = msgspec.structs.replace(trace.source, origin_ns=origin_ns)
    return Trace(source, trace.integrity, {name: trace.table(name) for name in trace})


@pytest.mark.parametrize("numbered", [True, False])
def test_seconds_and_20_ppm_are_found_to_the_jitter(numbered: bool) -> None:
    ends = moments(300)
    first = recorded(ends, 0, late_ns=3_000_000, numbered=numbered)
    other = recorded(ends, 1, offset=OFFSET, drift_ppm=DRIFT_PPM, late_ns=3_000_000, numbered=numbered)
    itself, fit = align([first, other])
    assert (itself.rank, itself.offset_ns, itself.drift_ppm, itself.matched_by) == (0, 0, 0.0, "itself")
    assert fit.rank == 1
    assert fit.matched == 300
    assert fit.matched_by == ("sequence" if numbered else "order")
    assert fit.drift_low_ppm < DRIFT_PPM < fit.drift_high_ppm
    assert abs(fit.drift_ppm - DRIFT_PPM) < 0.2
    assert fit.offset_ns is not None
    true_offset = OFFSET + DRIFT_PPM * 1e-6 * (fit.reference_ns - ends[0])
    assert abs(fit.offset_ns - true_offset) < 2_000
    assert 500 < fit.residual_ns < 5_000 < fit.residual_p95_ns < 20_000
    # The last collective, 10 s from the reference, lands where the first rank saw it.
    end = [trace.kernels["ts_ns"][-1] + trace.kernels["dur_ns"][-1] for trace in (first, other)]
    assert abs(int(fit.to_first(end[1])) - end[0]) < 20_000
    assert not np.any(fit.to_first([end[1], end[1] + 1_000_000]) - fit.to_first(end[1]) - [0, 999_980])


def test_collectives_that_one_rank_lacks_are_passed_over_by_number() -> None:
    ends = moments(60)
    first = recorded(ends, 0)
    other = recorded(ends, 1, offset=OFFSET, drift_ppm=DRIFT_PPM, leave_out=(7, 8, 31))
    fit = align([first, other])[1]
    assert fit.matched == 57
    assert abs(fit.drift_ppm - DRIFT_PPM) < 1
    assert fit.residual_p95_ns < 20_000


def test_without_numbers_a_missing_one_is_a_reason_to_refuse() -> None:
    ends = moments(60)
    ranks = [recorded(ends, 0, numbered=False), recorded(ends, 1, numbered=False, leave_out=(7,))]
    with pytest.raises(NotEnoughData, match=r"rank 1 cannot be aligned.*all_reduce 60 and 59"):
        align(ranks)


def test_a_few_that_ended_elsewhere_do_not_move_the_fit() -> None:
    ends = moments(50)
    wrong = [end + (40_000_000 if number % 10 == 3 else 0) for number, end in enumerate(ends)]
    fit = align([recorded(ends, 0), recorded(wrong, 1, offset=OFFSET, drift_ppm=DRIFT_PPM)])[1]
    assert abs(fit.drift_ppm - DRIFT_PPM) < 1.5
    assert fit.residual_ns < 20_000
    assert fit.residual_p95_ns > 30_000_000


def test_the_order_of_a_window_that_began_later_is_refused() -> None:
    ends = moments(60)
    ranks = [recorded(ends[:-4], 0, numbered=False), recorded(ends[4:], 1, numbered=False)]
    with pytest.raises(NotEnoughData, match="shifted by 4"):
        align(ranks)
    with pytest.raises(NotEnoughData, match="shifted by"):
        align([recorded(range(0, 10**9, 10**7), rank, numbered=False) for rank in range(2)])


def test_numbers_that_do_not_meet_are_not_replaced_by_order() -> None:
    ends = moments(20)
    ranks = [recorded(ends, 0, leave_out=range(10)), recorded(ends, 1, leave_out=range(10, 20))]
    with pytest.raises(NotEnoughData, match="same process group and sequence number"):
        align(ranks)


@pytest.mark.parametrize(("count", "enough"), [(2, False), (3, True)])
def test_three_are_needed(count: int, enough: bool) -> None:
    ranks = [recorded(moments(count), rank, offset=OFFSET * rank) for rank in range(2)]
    if enough:
        fit = align(ranks)[1]
        assert fit.offset_ns is not None
        assert abs(fit.offset_ns - OFFSET) < 20_000
    else:
        with pytest.raises(NotEnoughData, match="only 2"):
            align(ranks)


def test_one_sided_operations_and_other_groups_tell_nothing() -> None:
    ends = moments(30)
    with pytest.raises(NotEnoughData, match="in which all take part"):
        align([recorded(ends, rank, operation="broadcast") for rank in range(2)])
    with pytest.raises(NotEnoughData):
        align([recorded(ends, rank, group_ranks=f"[{rank}, {rank + 2}]") for rank in range(2)])


def test_without_an_absolute_time_positions_are_aligned_all_the_same() -> None:
    ends = moments(30)
    ranks = [recorded(ends, rank, offset=OFFSET * rank) for rank in range(2)]
    fit = align([ranks[0], with_origin(ranks[1], None)])[1]
    assert fit.offset_ns is None
    assert abs(fit.shift_ns + 400_000) < 5_000


def test_clocks_of_one_pace_show_no_drift() -> None:
    fits = [align([recorded(moments(40, seed=seed), rank) for rank in range(2)])[1] for seed in range(20)]
    assert sum(fit.drift_shown for fit in fits) <= 4


@pytest.mark.skipif(not CORPUS, reason="real recordings are found through SLIPSTREAM_CORPUS")
def test_sampled_recordings_are_refused() -> None:
    traces = slipstream.load(Path(str(CORPUS)) / "two_ranks")
    assert isinstance(traces, list)
    with pytest.raises(NotEnoughData, match="in which all take part"):
        align(traces)
