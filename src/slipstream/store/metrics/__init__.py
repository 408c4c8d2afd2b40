"""Metrics: derived tables that answer questions about performance, one file per theme."""

from slipstream.store.metrics.arithmetic import ARITHMETIC
from slipstream.store.metrics.device_time import (
    COPY_BANDWIDTH,
    EXPOSED_COLLECTIVES,
    KERNEL_GROUPS,
    KERNEL_SEQUENCES,
    OVERLAP,
    STREAM_IDLE,
)
from slipstream.store.metrics.host_time import HOST_TIME
from slipstream.store.metrics.metric import Metric

METRICS: tuple[Metric, ...] = (
    OVERLAP,
    STREAM_IDLE,
    EXPOSED_COLLECTIVES,
    COPY_BANDWIDTH,
    KERNEL_GROUPS,
    KERNEL_SEQUENCES,
    *HOST_TIME,
    *ARITHMETIC,
)

__all__ = ["METRICS", "Metric"]
