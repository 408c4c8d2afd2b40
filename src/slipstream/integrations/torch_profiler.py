"""torch.profiler: a handler that tells what its trace says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.profiler import tensorboard_trace_handler

from slipstream.api import diagnose, load
from slipstream.reports import render
from slipstream.store import Trace


def trace_handler(folder: str | Path, tell: Callable[[str], Any] = print) -> Callable[[Any], None]:
    """A handler for ``torch.profiler.profile(on_trace_ready=...)``: writes the trace and tells what holds the job back.

    Args:
        folder: TensorBoard log directory; traces are named as ``tensorboard_trace_handler`` names them.
        tell: gets the diagnosis as text.
    """

    def handle(profiler: Any) -> None:
        before = {*Path(folder).rglob("*.json*")}
        tensorboard_trace_handler(str(folder), use_gzip=True)(profiler)
        for path in sorted({*Path(folder).rglob("*.json*")} - before):
            loaded = load(path)
            tell(render([diagnose(trace) for trace in ([loaded] if isinstance(loaded, Trace) else loaded)], "text"))

    return handle
