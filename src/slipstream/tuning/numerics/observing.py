"""The part that watches what a job computes; loaded in its process once torch has been imported."""

import functools
import os
import sys
import weakref
from pathlib import Path
from typing import Any, cast

import msgspec

from slipstream.capture import endings
from slipstream.capture.job import Job
from slipstream.tuning.first_model import at_first_model
from slipstream.tuning.numerics.observation import FILE, OBSERVED, UPDATES, Observed, Update, Watch
from slipstream.tuning.trials.inside import seed_all

PART = "slipstream.tuning.numerics.observing"
_SAMPLE = 256
"""Elements of a parameter whose changes are kept."""
_IMPLEMENTATION = {"params", "foreach", "fused", "capturable", "differentiable", "lr", "initial_lr", "param_names"}
"""Settings of groups that choose how, not what, is computed; learning rates are kept step by step."""
_DROPOUTS = ("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")


def install(job: Job) -> None:
    """Seed everything and watch."""
    folder = Path(job.folder)
    watch = msgspec.json.decode((folder / FILE).read_bytes(), type=Watch)
    seed_all(watch.seed)
    if watch.seed:
        shift_seeds(watch.seed)
    if not watch.dropout:
        drop_nothing()
    if watch.perturbation:
        at_first_model(functools.partial(perturb, size=watch.perturbation, seed=watch.perturbation_seed))
    observer = Observer(watch, folder)
    observer.listen()
    os.register_at_fork(after_in_child=observer.forget)


def shift_seeds(by: int) -> None:
    """Whatever seed the job sets, another one is taken.

    Args:
        by: added to seeds of python, numpy and torch.
    """
    import random

    import numpy as np
    import torch

    def shifted(original: Any) -> Any:
        @functools.wraps(original)
        def seed(value: Any = None, *args: Any, **kwargs: Any) -> Any:
            return original(value + by if isinstance(value, int) else value, *args, **kwargs)

        return seed

    for place, name in ((random, "seed"), (np.random, "seed"), (torch, "manual_seed")):
        setattr(place, name, shifted(getattr(place, name)))


def drop_nothing() -> None:
    """Dropout lets everything pass."""
    import torch
    from torch.nn import functional

    def passing(input: Any, *args: Any, **kwargs: Any) -> Any:
        return input

    for name in _DROPOUTS:
        setattr(functional, name, passing)
    attention = functional.scaled_dot_product_attention

    @functools.wraps(attention)
    def without_dropout(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *rest: Any, **more: Any
    ) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *rest, **more)

    functional.scaled_dot_product_attention = cast(Any, without_dropout)
    torch.dropout = cast(Any, passing)


def perturb(model: Any, size: float, seed: int) -> None:
    """Change all weights at random.

    Args:
        model: whose weights.
        size: relative.
        seed: of the change; the job's own random numbers stay as they are.
    """
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                chance = torch.Generator(device=parameter.device).manual_seed(seed)
                noise = torch.randn(parameter.shape, generator=chance, device=parameter.device, dtype=torch.float32)
                parameter.mul_((1 + size * noise).to(parameter.dtype))


class Observer:
    """Notes losses, gradients and updates of the process that trains.

    Args:
        watch: what is wanted.
        folder: where it is left.
    """

    def __init__(self, watch: Watch, folder: Path) -> None:
        self._watch = watch
        self._folder = folder
        self._off = False
        self._depth = 0
        self._steps = 0
        self._optimizers: dict[int, Any] = {}
        self._losses: list[float] = []
        self._norms: list[float] = []
        self._updates: list[tuple[Update, ...]] = []
        self._rates: list[tuple[float, ...]] = []
        self._before: list[Any] = []
        self._calls = {"clip_grad_norm_": 0, "clip_grad_value_": 0, "clipped": 0, "zero_grad": 0, "step": 0}
        self._samples: int | None = 0

    def listen(self) -> None:
        """Wrap what tells of losses, clipping, steps and batches."""
        from torch.optim import optimizer

        endings.before_the_end(lambda how: self._write())
        optimizer.register_optimizer_step_pre_hook(self._steps_now)
        optimizer.register_optimizer_step_post_hook(self._stepped)
        self._watch_optimizers()
        self._watch_backward()
        self._watch_clipping()
        self._watch_batches()

    def forget(self) -> None:
        """A process that was forked off is not watched."""
        self._off = True

    def _watch_optimizers(self) -> None:
        from torch.optim import Optimizer

        original, zero = Optimizer.__init__, Optimizer.zero_grad

        @functools.wraps(original)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
            original(optimizer, *args, **kwargs)
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)

        @functools.wraps(zero)
        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._calls["zero_grad"] += 1
            zero(optimizer, *args, **kwargs)

        cast(Any, Optimizer).__init__ = __init__
        cast(Any, Optimizer).zero_grad = zero_grad

    def _watch_backward(self) -> None:
        import torch

        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._off or self._depth:
                return original(tensors, *args, **kwargs)
            roots = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
            self._losses.append(sum(float(root.detach()) for root in roots if root.numel() == 1))
            self._depth += 1
            try:
                result = original(tensors, *args, **kwargs)
            finally:
                self._depth -= 1
            self._norms.append(self._gradient_norm())
            return result

        torch.autograd.backward = cast(Any, backward)

    def _watch_clipping(self) -> None:
        import torch
        from torch.nn import utils
        from torch.nn.utils import clip_grad

        norm, value = clip_grad.clip_grad_norm_, clip_grad.clip_grad_value_

        @functools.wraps(norm)
        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            total = norm(parameters, max_norm, *args, **kwargs)
            self._calls["clip_grad_norm_"] += 1
            self._calls["clipped"] += bool(float(torch.as_tensor(total)) > float(max_norm))
            return total

        @functools.wraps(value)
        def clip_grad_value_(*args: Any, **kwargs: Any) -> None:
            self._calls["clip_grad_value_"] += 1
            value(*args, **kwargs)

        for place in (utils, clip_grad):
            cast(Any, place).clip_grad_norm_ = clip_grad_norm_
            cast(Any, place).clip_grad_value_ = clip_grad_value_

    def _watch_batches(self) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        from slipstream.capture.batches import samples_of

        original = _BaseDataLoaderIter.__next__

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:  # noqa: N807 - it takes the place of the method of that name
            batch = original(iterator)
            if not self._off:
                count = samples_of(batch)
                self._samples = None if count is None or self._samples is None else self._samples + count
            return batch

        cast(Any, _BaseDataLoaderIter).__next__ = __next__

    def _alive(self) -> list[Any]:
        return [optimizer for reference in self._optimizers.values() if (optimizer := reference()) is not None]

    def _parameters(self) -> list[Any]:
        return [
            parameter
            for optimizer in self._alive()
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]

    def _gradient_norm(self) -> float:
        import torch

        gradients = [parameter.grad for parameter in self._parameters() if parameter.grad is not None]
        if not gradients:
            return 0.0
        norms = torch.stack([gradient.detach().norm().double().cpu() for gradient in gradients])
        return float(norms.norm())

    def _steps_now(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._off or len(self._updates) >= UPDATES:
            return
        self._before = [parameter.detach().clone() for group in optimizer.param_groups for parameter in group["params"]]

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._off:
            return
        self._steps += 1
        self._calls["step"] += 1
        groups = optimizer.param_groups
        self._rates.append(tuple(float(group["lr"]) for group in groups if "lr" in group))
        if self._before:
            after = [parameter.detach() for group in groups for parameter in group["params"]]
            self._updates.append(tuple(map(_update, self._before, after)))
            self._before = []
        if self._steps == self._watch.steps:
            self._write()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(0)

    def _described(self) -> tuple[dict[str, Any], ...]:
        """Class, groups and settings of the optimizers that there are."""
        return tuple(
            {
                "class": type(optimizer).__name__,
                "groups": [
                    {
                        "parameters": [list(parameter.shape) for parameter in group["params"]],
                        **{name: str(value) for name, value in group.items() if name not in _IMPLEMENTATION},
                    }
                    for group in optimizer.param_groups
                ],
            }
            for optimizer in self._alive()
        )

    def _write(self) -> None:
        if self._off or not self._steps:
            return
        self._off = True
        observed = Observed(
            losses=tuple(self._losses),
            gradient_norms=tuple(self._norms),
            updates=tuple(self._updates),
            learning_rates=tuple(self._rates),
            optimizers=self._described(),
            calls=self._calls,
            samples=self._samples or None,
        )
        (self._folder / OBSERVED).write_bytes(msgspec.json.encode(observed))


def _update(before: Any, after: Any) -> Update:
    change = (after - before).flatten().double()
    count = change.numel()
    places = sorted({place * count // _SAMPLE for place in range(min(_SAMPLE, count))})
    return Update(norm=float(change.norm()), sample=tuple(change[places].tolist()))
