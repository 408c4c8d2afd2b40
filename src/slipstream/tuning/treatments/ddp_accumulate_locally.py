"""Gradients are exchanged once per optimizer step, not after every micro-step."""

from typing import Any

from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment

_CYCLES = 2
"""Optimizer steps that are watched first."""


class DdpAccumulateLocally(Treatment):
    """Has DistributedDataParallel exchange gradients in the last micro-step of an accumulation cycle alone.

    The number of forward passes per optimizer step is learnt from the first cycles, which run as they are. Where a
    later cycle has fewer, its gradients would not have been exchanged: the job is ended with an error rather than
    trained wrongly. Mean gradients are the same up to rounding.
    """

    title = "gradients exchanged once per step"
    fix_class = "rounding"

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._forwards = 0
        self._cycles: list[int] = []
        self._saved = 0
        self._last_exchanged = True

    def applies_to(self, environment: Environment) -> str | None:
        """In jobs of several ranks."""
        if int(environment.variables.get("WORLD_SIZE", "1") or 1) < 2:
            return "the job has one rank (WORLD_SIZE is not set): apply it to each rank with slipstream run --with"
        return None

    def install(self) -> None:
        """Count forward passes between steps, and hold exchanges back."""
        from torch.nn.parallel import DistributedDataParallel
        from torch.optim import optimizer

        kind: Any = DistributedDataParallel
        original = kind.forward

        def forward(model: Any, *args: Any, **kwargs: Any) -> Any:
            import torch

            if not (model.training and torch.is_grad_enabled() and model.require_backward_grad_sync):
                return original(model, *args, **kwargs)
            self._forwards += 1
            self._last_exchanged = not self._holds_back()
            if self._last_exchanged:
                return original(model, *args, **kwargs)
            self._saved += 1
            model.require_backward_grad_sync = False  # as ``no_sync`` does, which the forward pass reads
            try:
                return original(model, *args, **kwargs)
            finally:
                model.require_backward_grad_sync = True

        kind.forward = forward
        optimizer.register_optimizer_step_pre_hook(self._step)

    def _holds_back(self) -> bool:
        """Whether the micro-step that begins is not the last of its cycle."""
        known = len(self._cycles) >= _CYCLES and len(set(self._cycles)) == 1
        return known and self._forwards < self._cycles[0]

    def _step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._last_exchanged:
            raise RuntimeError(
                f"slipstream: a cycle of {self._forwards} micro-steps where there were {self._cycles[0]}: its "
                "gradients were not exchanged; leave ddp_accumulate_locally out"
            )
        if self._forwards and len(self._cycles) < _CYCLES:
            self._cycles.append(self._forwards)
        self._forwards = 0

    def proof(self) -> Proof:
        """How many exchanges were saved."""
        return Proof(
            applied=self._saved > 0,
            evidence=f"{self._saved} micro-steps did not exchange gradients; cycles of {self._cycles} forward passes",
        )

    def permanent(self) -> Permanent:
        """A context."""
        return Permanent(
            summary="exchange gradients in the last micro-step alone",
            snippet="with model.no_sync():  # in all micro-steps but the last\n    loss.backward()",
        )
