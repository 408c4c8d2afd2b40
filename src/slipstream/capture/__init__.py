"""Runs a live training job under light hooks and writes a run folder; the job's code is not changed.

``launch`` is the launcher's side. The job's side starts in ``hook/sitecustomize.py``, a start-up hook that knows
nothing but how to wait for ``import torch``; it then loads the parts that the job's specification names. The job's
side must stay cheap to import, hence the lazy names here.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipstream.capture.job import JobSpec
    from slipstream.capture.launcher import Outcome, check_target, launch, new_folder
    from slipstream.capture.signals import end_like

_LAZY = {
    "JobSpec": "slipstream.capture.job",
    "Outcome": "slipstream.capture.launcher",
    "check_target": "slipstream.capture.launcher",
    "end_like": "slipstream.capture.signals",
    "launch": "slipstream.capture.launcher",
    "new_folder": "slipstream.capture.launcher",
}

__all__ = ["JobSpec", "Outcome", "check_target", "end_like", "launch", "new_folder"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'slipstream.capture' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
