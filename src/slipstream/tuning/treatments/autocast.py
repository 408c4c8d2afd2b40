"""The model computes in a 16-bit type where that is safe."""

from typing import Any, ClassVar

from slipstream.tuning.environment import Environment
from slipstream.tuning.first_model import at_first_model
from slipstream.tuning.treatment import Permanent, Proof, Treatment

_CPU_UNITS = ("amx_bf16", "avx512_bf16", "bf16")
"""Flags of processors that compute bfloat16 in hardware; without them it is emulated, twenty times slower."""


class Autocast(Treatment):
    """Runs the forward pass of the first model that is trained under ``torch.autocast`` with bfloat16.

    Weights, gradients and optimizer stay in float32, and so does what the model returns. Pays where products of
    matrices and convolutions take most of the time and the device has units for the type. Rounds to 8 bits of
    mantissa: whether the training still learns the same is for you to judge.
    """

    title = "bfloat16 autocast"
    fix_class = "semantic"
    defaults: ClassVar = {}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._calls = 0
        self._why = "no model was called for training"

    def applies_to(self, environment: Environment) -> str | None:
        """Where there are units for bfloat16."""
        if environment.device_kind == "cpu" and environment.cpu_flags.isdisjoint(_CPU_UNITS):
            return "this processor has no bfloat16 units (avx512_bf16 or amx_bf16): it would be emulated"
        if environment.compute_capability is not None and environment.compute_capability < (8, 0):
            major, minor = environment.compute_capability
            return f"bfloat16 needs compute capability 8.0, and the device has {major}.{minor}"
        return None

    def install(self) -> None:
        """Wrap the forward pass of the first model that is trained."""
        at_first_model(self._wrap)

    def _wrap(self, model: Any) -> None:
        import torch

        kind = next(model.parameters()).device.type
        if torch.is_autocast_enabled(kind):
            self._why = "the job uses autocast itself"
            return
        original = model.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            with torch.autocast(kind, torch.bfloat16):
                found = original(*args, **kwargs)
            return _as_float32(found)

        model.forward = forward

    def proof(self) -> Proof:
        """How often the model ran so."""
        if not self._calls:
            return Proof(applied=False, evidence=self._why)
        return Proof(applied=True, evidence=f"{self._calls} forward passes ran under autocast with bfloat16")

    def permanent(self) -> Permanent:
        """A context."""
        return Permanent(
            summary="run the forward pass under autocast",
            snippet="with torch.autocast(device.type, torch.bfloat16):\n    loss = model(**batch).loss",
        )


def _as_float32(value: Any) -> Any:
    """Tensors of the 16-bit type become float32, in whatever the model returns."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype == torch.bfloat16 else value
    if isinstance(value, dict):
        for name, part in list(value.items()):
            value[name] = _as_float32(part)
        return value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_as_float32, value))
    return value
