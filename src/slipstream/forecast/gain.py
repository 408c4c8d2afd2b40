"""Edits -> the gain of the contract: share of time saved, with an interval and what it rests on."""

from collections.abc import Sequence

import numpy as np

from slipstream.analysis.graph.nodes import Longs
from slipstream.forecast.edits import Edit
from slipstream.forecast.replay import BEST, EXPECTED, WORST, Replay
from slipstream.model import Gain, NotEnoughData

WORST_REPLAY_ERROR = 0.05
"""A replay that misses the recording by more than this share forecasts nothing."""
_DRAWS = 1000
_CONFIDENCE = 0.9
_SEED = 20_260_101


def gain_of(replay: Replay, edits: Sequence[Edit]) -> Gain:
    """What edits would save, all made together.

    The interval joins three doubts: what the edits themselves leave open (their worst and best case), how much steps
    differ (steps drawn with replacement, 90 %), and the share of the saving that the replay's own error may hide.

    Args:
        replay: the window.
        edits: of one fix, or of several.
    Raises:
        NotEnoughData: the unedited replay misses the recording by more than ``WORST_REPLAY_ERROR``.
    """
    error = replay.error
    if error > WORST_REPLAY_ERROR:
        raise NotEnoughData(
            f"replayed without any change the recording takes {error * 100:.0f} % "
            f"{'less' if int(replay.replayed_ns.sum()) < int(replay.recorded_ns.sum()) else 'more'} time than it took: "
            "the graph does not explain enough of it to forecast"
        )
    saved = {case: replay.replayed_ns - replay.steps_with(edits, case) for case in (WORST, EXPECTED, BEST)}
    low, _ = _between(saved[WORST], replay.recorded_ns)
    _, high = _between(saved[BEST], replay.recorded_ns)
    expected = _share(saved[EXPECTED], replay.recorded_ns)
    doubt = error * abs(expected)
    assumptions = tuple(dict.fromkeys(edit.assumption for edit in edits))
    return Gain(
        low=min(low - doubt, expected),
        expected=expected,
        high=min(max(high + doubt, expected), 1.0),
        unit="step_time",
        basis="replay",
        assumptions=assumptions,
        ceiling=any(edit.ceiling for edit in edits),
        replay_error=error,
    )


def ceiling_of(cost_ns: int, length_ns: int) -> Gain:
    """The most that a fix can save where no replay tells more: all that the problem costs.

    Args:
        cost_ns: time it costs in the window.
        length_ns: length of the window.
    """
    share = min(cost_ns / length_ns, 1.0) if length_ns else 0.0
    return Gain(
        low=0.0,
        expected=share,
        high=share,
        unit="step_time",
        basis="cost",
        assumptions=("the fix removes all of the cost and adds nothing",),
        ceiling=True,
    )


def _share(saved: Longs, recorded: Longs) -> float:
    total = int(recorded.sum())
    return float(saved.sum()) / total if total else 0.0


def _between(saved: Longs, recorded: Longs) -> tuple[float, float]:
    """Interval of the share saved, by drawing steps; with fewer than three steps there is nothing to draw from."""
    if len(saved) < 3:
        return _share(saved, recorded), _share(saved, recorded)
    drawn = np.random.default_rng(_SEED).integers(0, len(saved), (_DRAWS, len(saved)))
    length = recorded[drawn].sum(axis=1)
    shares = saved[drawn].sum(axis=1) / np.maximum(length, 1)
    low, high = np.quantile(shares, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)
