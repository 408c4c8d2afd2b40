"""slipstream: finds what holds a PyTorch training run back, says what a fix would gain, and proves it."""

import importlib
from typing import TYPE_CHECKING, Any

from slipstream._version import __version__

if TYPE_CHECKING:
    from slipstream.api import diagnose, diff, load, profile, render
    from slipstream.integrations.torch_profiler import trace_handler

_LAZY = dict.fromkeys(("diagnose", "diff", "load", "profile", "render"), "slipstream.api")
_LAZY["trace_handler"] = "slipstream.integrations.torch_profiler"

__all__ = ["__version__", "diagnose", "diff", "load", "profile", "render", "trace_handler"]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext slipstream``: the cell magic ``%%slipstream``."""
    from slipstream.integrations.notebook import register

    register(shell)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'slipstream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
