"""All parameters are updated in one pass."""

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from slipstream.tuning.edits import Keyword
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of torch.optim that have a fused form."""


class FusedOptimizer(Treatment):
    """Has the optimizers of ``torch.optim`` update all parameters together.

    The setting ``form`` is ``fused`` (one kernel or loop for a whole group) or ``foreach`` (one per operation). Pays
    where a model has many small parameters. What the job itself asks for (``fused=False``) is left as it is, and so
    is an optimizer that does not have the form for these parameters.
    """

    title = "fused optimizer"
    fix_class = "rounding"
    defaults: ClassVar = {"form": "fused"}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._made: weakref.WeakSet[Any] = weakref.WeakSet()  # a job may make one for every fold of its data
        self._seen: Proof | None = None
        self._refused: list[str] = []

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Have constructors take the form where the job leaves the choice to torch."""
        import torch

        form = str(self.settings["form"])
        kinds: list[tuple[str, Any]] = inspect.getmembers(torch.optim, inspect.isclass)
        for _, kind in kinds:
            parameters = inspect.signature(kind.__init__).parameters
            if form in parameters and (form != "fused" or kind.__name__ in FUSED):
                kind.__init__ = self._with_form(kind.__init__, form)

    def _with_form(self, original: Callable[..., None], form: str) -> Callable[..., None]:
        @functools.wraps(original)
        def __init__(optimizer: Any, params: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
            chosen = ("fused", "foreach", "differentiable")
            if any(kwargs.get(name) is not None and kwargs.get(name) is not False for name in chosen) or (
                kwargs.get(form) is False
            ):
                original(optimizer, params, *args, **kwargs)
                return
            params = list(params)  # a generator can be read once, and it may take two attempts
            self._made.add(optimizer)
            try:
                original(optimizer, params, *args, **{**kwargs, form: True})
            except (RuntimeError, ValueError) as error:
                self._refused.append(str(error))
                original(optimizer, params, *args, **kwargs)

        return __init__

    def proof(self) -> Proof:
        """The param groups say so; once all optimizers are gone, what they said last."""
        form = str(self.settings["form"])
        groups = [(type(optimizer).__name__, group) for optimizer in self._made for group in optimizer.param_groups]
        if not groups and self._seen is not None:
            return self._seen
        taken = [name for name, group in groups if group.get(form)]
        names = ", ".join(sorted({name for name, _ in groups})) or "optimizers of torch.optim"
        why = f"; {self._refused[0]}" if self._refused else ""
        evidence = f"{len(taken)} of {len(groups)} param groups of {names} have {form}=True{why}"
        self._seen = Proof(applied=bool(taken), evidence=evidence)
        return self._seen

    def permanent(self) -> Permanent:
        """A keyword."""
        form = self.settings["form"]
        return Permanent(
            summary=f"pass {form}=True to the optimizer",
            snippet=f"optimizer = torch.optim.AdamW(model.parameters(), lr=lr, {form}=True)",
            edit=Keyword(calls=FUSED, keywords={str(form): "True"}, unless=("fused", "foreach", "differentiable")),
        )
