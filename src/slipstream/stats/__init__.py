"""Samples -> interval and verdict. Plain arrays in, no files; the only room that imports scipy."""

from slipstream.stats.comparison import CONFIDENCE, Comparison, compare
from slipstream.stats.drift import Drift, drift_within, drifts_across
from slipstream.stats.line import Line, robust_line
from slipstream.stats.median import Spread, median_spread
from slipstream.stats.pairs import ALPHA, LEAST_PAIRS, POWER, PairedEffect, judge, t_interval
from slipstream.stats.screening import MOST_KEPT, Screened, screen
from slipstream.stats.verdict import verdict_of

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "LEAST_PAIRS",
    "MOST_KEPT",
    "POWER",
    "Comparison",
    "Drift",
    "Line",
    "PairedEffect",
    "Screened",
    "Spread",
    "compare",
    "drift_within",
    "drifts_across",
    "judge",
    "median_spread",
    "robust_line",
    "screen",
    "t_interval",
    "verdict_of",
]
