"""Treatments, trials in fresh processes, proof that they applied, and verdicts.

The names are lazy: the job's own process imports parts of this package and must stay cheap to start.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipstream.capture.job import Choice
    from slipstream.tuning.child import Child
    from slipstream.tuning.environment import Environment, look_around
    from slipstream.tuning.numerics.checking import Checked, Variant, check, check_variants
    from slipstream.tuning.proving import Proven, Verdicts, prove
    from slipstream.tuning.registry import all_treatments, treatment_of
    from slipstream.tuning.treatment import Permanent, Proof, Treatment
    from slipstream.tuning.trials.measuring import measure
    from slipstream.tuning.trials.plan import Arm, Plan, Protocol
    from slipstream.tuning.trials.results import Measurement

_LAZY = {
    "Arm": "slipstream.tuning.trials.plan",
    "Checked": "slipstream.tuning.numerics.checking",
    "Child": "slipstream.tuning.child",
    "Choice": "slipstream.capture.job",
    "Environment": "slipstream.tuning.environment",
    "Measurement": "slipstream.tuning.trials.results",
    "Permanent": "slipstream.tuning.treatment",
    "Plan": "slipstream.tuning.trials.plan",
    "Proof": "slipstream.tuning.treatment",
    "Proven": "slipstream.tuning.proving",
    "Protocol": "slipstream.tuning.trials.plan",
    "Treatment": "slipstream.tuning.treatment",
    "Variant": "slipstream.tuning.numerics.checking",
    "Verdicts": "slipstream.tuning.proving",
    "all_treatments": "slipstream.tuning.registry",
    "check": "slipstream.tuning.numerics.checking",
    "check_variants": "slipstream.tuning.numerics.checking",
    "look_around": "slipstream.tuning.environment",
    "measure": "slipstream.tuning.trials.measuring",
    "prove": "slipstream.tuning.proving",
    "treatment_of": "slipstream.tuning.registry",
}

__all__ = [
    "Arm",
    "Checked",
    "Child",
    "Choice",
    "Environment",
    "Measurement",
    "Permanent",
    "Plan",
    "Proof",
    "Protocol",
    "Proven",
    "Treatment",
    "Variant",
    "Verdicts",
    "all_treatments",
    "check",
    "check_variants",
    "look_around",
    "measure",
    "prove",
    "treatment_of",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'slipstream.tuning' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
