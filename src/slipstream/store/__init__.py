"""Every table declared once - column, type, unit, meaning - and the objects that hold them."""

from slipstream.store.column import Column, Kind, Table
from slipstream.store.derived import DERIVED
from slipstream.store.excerpt import excerpt
from slipstream.store.measured import MEASURED
from slipstream.store.metrics import METRICS, Metric
from slipstream.store.recorded import RECORDED
from slipstream.store.report import Report
from slipstream.store.run_folder import LINES, RunFolder, RunInfo
from slipstream.store.tables import Builder, Tables
from slipstream.store.trace import Deferred, Trace

DECLARED = {table.name: table for table in (*RECORDED, *MEASURED, *DERIVED)}
"""Every table by name."""

__all__ = [
    "DECLARED",
    "DERIVED",
    "LINES",
    "MEASURED",
    "METRICS",
    "RECORDED",
    "Builder",
    "Column",
    "Deferred",
    "Kind",
    "Metric",
    "Report",
    "RunFolder",
    "RunInfo",
    "Table",
    "Tables",
    "Trace",
    "excerpt",
]
