"""What changed between two recordings: steps, parts of the step, and the work within each part."""

from slipstream.analysis.diff.difference import difference

__all__ = ["difference"]
