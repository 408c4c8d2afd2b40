"""Gradients are dropped, not filled with zeros."""

import functools
from typing import Any

from slipstream.tuning.edits import NoKeyword
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class GradientsToNone(Treatment):
    """Has ``zero_grad(set_to_none=False)`` drop the gradients all the same.

    Saves one kernel per parameter and step. A parameter that gets no gradient in a step is then left out of the
    optimizer's step, where it would else be moved by momentum or weight decay.
    """

    title = "gradients set to None"
    fix_class = "rounding"

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._calls = 0

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Wrap the methods of optimizers and modules."""
        import torch

        for kind in (torch.optim.Optimizer, torch.nn.Module):
            kind.zero_grad = self._dropping(kind.zero_grad)  # type: ignore[method-assign]

    def _dropping(self, original: Any) -> Any:
        @functools.wraps(original)
        def zero_grad(owner: Any, set_to_none: bool = True) -> None:
            self._calls += not set_to_none
            original(owner, set_to_none=True)

        return zero_grad

    def proof(self) -> Proof:
        """How many calls asked for zeros."""
        return Proof(
            applied=self._calls > 0,
            evidence=f"{self._calls} calls of zero_grad(set_to_none=False) dropped the gradients",
        )

    def permanent(self) -> Permanent:
        """A call without its argument."""
        return Permanent(
            summary="leave set_to_none as it is",
            snippet="optimizer.zero_grad()",
            edit=NoKeyword(method="zero_grad", keyword="set_to_none"),
        )
