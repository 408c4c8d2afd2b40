"""Samples -> interval and verdict. Plain arrays in, no files; the only room that imports scipy."""

from slipstream.stats.comparison import CONFIDENCE, Comparison, Verdict, compare
from slipstream.stats.line import Line, robust_line
from slipstream.stats.median import Spread, median_spread

__all__ = ["CONFIDENCE", "Comparison", "Line", "Spread", "Verdict", "compare", "median_spread", "robust_line"]
