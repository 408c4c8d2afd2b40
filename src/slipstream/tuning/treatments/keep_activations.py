"""Activations are kept, not computed again."""

import functools
from typing import Any

from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class KeepActivations(Treatment):
    """Turns activation checkpointing off: what ``torch.utils.checkpoint`` is asked to compute twice is computed once.

    Pays where the memory for it is there; where it is not, the trial runs out of memory and says so.
    """

    title = "activation checkpointing off"
    fix_class = "exact"

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._calls = 0

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Let checkpointed functions run as they are."""
        import torch.utils.checkpoint as module

        original = module.checkpoint
        own = {"use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state"}

        @functools.wraps(original)
        def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("context_fn") is not None:  # selective: what is kept is the job's own choice
                return original(function, *args, **kwargs)
            self._calls += 1
            return function(*args, **{name: value for name, value in kwargs.items() if name not in own})

        module.checkpoint = checkpoint

    def proof(self) -> Proof:
        """How often it happened."""
        return Proof(applied=self._calls > 0, evidence=f"{self._calls} checkpointed calls kept their activations")

    def permanent(self) -> Permanent:
        """A line less."""
        return Permanent(summary="do not checkpoint activations", snippet="model.gradient_checkpointing_disable()")
