"""A slice of a recording as a Chrome trace that Perfetto opens: the recorded rows, and slipstream's own tracks."""

from slipstream.reports.perfetto.document import Slice, timeline

__all__ = ["Slice", "timeline"]
