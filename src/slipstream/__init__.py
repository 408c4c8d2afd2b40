"""slipstream: finds what holds a PyTorch training run back, says what a fix would gain, and proves it."""

import importlib
from typing import TYPE_CHECKING, Any

from slipstream._version import __version__

if TYPE_CHECKING:
    from slipstream.api import diagnose, diff, load

_LAZY = {"diagnose": "slipstream.api", "diff": "slipstream.api", "load": "slipstream.api"}

__all__ = ["__version__", "diagnose", "diff", "load"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'slipstream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
