"""The model that a job trains, seen at its first call."""

from collections.abc import Callable
from typing import Any


def at_first_model(action: Callable[[Any], None]) -> None:
    """Have a function called once with the first module that is called for training.

    That is the outermost one of the first forward pass whose gradients count: it is in training mode, gradients are
    enabled and some of its parameters require them. The call itself goes on as it was begun.

    Args:
        action: gets the module, before its forward pass.
    """
    import torch
    from torch.nn.modules.module import register_module_forward_pre_hook

    def seen(module: Any, inputs: Any) -> None:
        if not (module.training and torch.is_grad_enabled()):
            return
        if any(parameter.requires_grad for parameter in module.parameters()):
            handle.remove()
            action(module)

    handle = register_module_forward_pre_hook(seen)
