"""Metrics: derived tables that answer questions about performance, one file per theme."""

from slipstream.store.metrics.arithmetic import ARITHMETIC
from slipstream.store.metrics.device_time import DEVICE_TIME
from slipstream.store.metrics.host_time import HOST_TIME
from slipstream.store.metrics.memory_use import MEMORY_USE
from slipstream.store.metrics.metric import Metric

METRICS: tuple[Metric, ...] = (*DEVICE_TIME, *HOST_TIME, *ARITHMETIC, *MEMORY_USE)

__all__ = ["METRICS", "Metric"]
