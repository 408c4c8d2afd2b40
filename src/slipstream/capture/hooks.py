"""Where torch tells what the training does: a few of its functions, wrapped once after it was imported.

Each wrapper takes its own line out of the traceback of an exception that passes through, so that a failing job
shows what it shows without slipstream.
"""

import functools
import gc
import os
import sys
import types
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch.amp import GradScaler, autocast
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter

from slipstream.capture.clock import monotonic_ns
from slipstream.capture.kineto import inside_backward, is_ours

if TYPE_CHECKING:
    from slipstream.capture.recorder import Recorder

_compiling: Callable[[], bool] = torch.compiler.is_compiling


class Listener(Protocol):
    """Who is told what the training does; ``recorder.Recorder`` says what each call means."""

    off: bool
    inside_optimizer: bool
    optimizer_calls: int

    def optimizer_stepped(
        self, optimizer: object, began_ns: int, ended_ns: int, frame: FrameType | None, skipped: bool | None
    ) -> None:
        """An optimizer has stepped, or GradScaler has left its step out."""

    def fetch_begins(self) -> None:
        """The training asks for a batch."""

    def fetched(
        self, iterator: Any, batch: object, first: bool, began_ns: int, ended_ns: int, frame: FrameType | None
    ) -> None:
        """A data loader has handed over a batch."""

    def went_backward(self, began_ns: int, ended_ns: int, frame: FrameType | None) -> None:
        """An outermost backward pass has returned."""


Undo = Callable[[], None]
"""Puts back what was wrapped."""


def watch_training(listener: Listener) -> None:
    """Wrap what tells of batches, backward passes and steps."""
    _watch_optimizers(listener)
    _watch_scalers(listener)
    _watch_loaders(listener)
    _watch_backward(listener)


def install_hooks(recorder: "Recorder") -> None:
    """Wrap everything that the recorder listens to, before any optimizer is made."""
    watch_training(recorder)
    _watch_surroundings(recorder)


def attach_hooks(recorder: "Recorder") -> Undo:
    """Wrap everything that the recorder listens to, in a process whose optimizers exist already.

    Returns:
        What takes the hooks off again.
    """
    undo = [_watch_optimizers_that_step(recorder), _watch_loaders(recorder), _watch_backward(recorder)]
    undo += _watch_surroundings(recorder)

    def detach() -> None:
        for one in reversed(undo):
            one()

    return detach


def _watch_surroundings(recorder: "Recorder") -> list[Undo]:
    os.register_at_fork(after_in_child=functools.partial(_forget, recorder))
    return [_watch_garbage_collector(recorder), _watch_autocast(recorder), _watch_profilers(recorder)]


def _replace(owner: Any, name: str, function: Any) -> Undo:
    original = getattr(owner, name)
    setattr(owner, name, function)
    return functools.partial(setattr, owner, name, original)


def _watch_optimizers_that_step(listener: Listener) -> Undo:
    """Wrap ``step`` of each optimizer, on the instance, once it has been seen to step."""
    wrapped: list[tuple[Any, Any, Any]] = []

    def seen(optimizer: Any, args: Any, kwargs: Any) -> None:
        if any(one is optimizer for one, _, _ in wrapped):
            return
        original, own = optimizer.step, vars(optimizer).get("step")

        @functools.wraps(original)
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            if _compiling() or listener.off:
                return original(*args, **kwargs)
            began = monotonic_ns()
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                _without_this_frame(error)
                raise
            ended = monotonic_ns()
            listener.optimizer_calls += 1
            skipped = None if getattr(self, "found_inf", None) is not None else False
            listener.optimizer_stepped(self, began, ended, sys._getframe(1), skipped)
            return result

        optimizer.step = types.MethodType(step, optimizer)  # schedulers that come later take it for a method
        wrapped.append((optimizer, optimizer.step, own))

    handle = register_optimizer_step_post_hook(seen)

    def undo() -> None:
        handle.remove()
        for optimizer, ours, own in wrapped:
            if vars(optimizer).get("step") is not ours:
                continue  # somebody has wrapped it again; ours lets everything through from now on
            if own is None:
                del optimizer.step
            else:
                optimizer.step = own
        wrapped.clear()

    return undo


def _watch_optimizers(listener: Listener) -> None:
    original = Optimizer.profile_hook_step

    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        hooked = original(func)

        @functools.wraps(hooked)
        def step(*args: Any, **kwargs: Any) -> Any:
            if _compiling() or listener.inside_optimizer or listener.off:
                return hooked(*args, **kwargs)
            listener.inside_optimizer = True
            began = monotonic_ns()
            try:
                result = hooked(*args, **kwargs)
            except BaseException as error:
                _without_this_frame(error)
                raise
            finally:
                listener.inside_optimizer = False
            ended = monotonic_ns()
            listener.optimizer_calls += 1
            # Optimizers that unscale by themselves know only on the device whether they left the update out.
            skipped = None if getattr(args[0], "found_inf", None) is not None else False
            listener.optimizer_stepped(args[0], began, ended, sys._getframe(1), skipped)
            return result

        return step

    cast(Any, Optimizer).profile_hook_step = staticmethod(profile_hook_step)


def _watch_scalers(listener: Listener) -> None:
    original = GradScaler.step

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = listener.optimizer_calls
        began = monotonic_ns()
        try:
            result = original(self, optimizer, *args, **kwargs)
        except BaseException as error:
            _without_this_frame(error)
            raise
        if listener.optimizer_calls == before and self.is_enabled() and not listener.off:
            listener.optimizer_stepped(optimizer, began, monotonic_ns(), sys._getframe(1), True)
        return result

    cast(Any, GradScaler).step = step


def _watch_loaders(listener: Listener) -> Undo:
    original = _BaseDataLoaderIter.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807 - it takes the place of the method of that name
        if listener.off:
            return original(self)
        first = self._num_yielded == 0
        listener.fetch_begins()
        began = monotonic_ns()
        try:
            batch = original(self)
        except BaseException as error:
            _without_this_frame(error)
            raise
        listener.fetched(self, batch, first, began, monotonic_ns(), sys._getframe(1))
        return batch

    return _replace(_BaseDataLoaderIter, "__next__", __next__)


def _watch_backward(listener: Listener) -> Undo:
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if _compiling() or listener.off or inside_backward():
            return original(*args, **kwargs)
        began = monotonic_ns()
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            _without_this_frame(error)
            raise
        listener.went_backward(began, monotonic_ns(), sys._getframe(1))
        return result

    return _replace(torch.autograd, "backward", backward)


def _watch_garbage_collector(recorder: "Recorder") -> Undo:
    began = 0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = monotonic_ns()
        elif began:
            recorder.collected_garbage(began, monotonic_ns(), info["generation"])

    gc.callbacks.append(collected)
    return functools.partial(gc.callbacks.remove, collected)


def _watch_autocast(recorder: "Recorder") -> Undo:
    original: Callable[[Any], Any] = autocast.__enter__

    @functools.wraps(original)
    def __enter__(self: Any) -> Any:  # noqa: N807 - it takes the place of the method of that name
        if not _compiling() and self._enabled and not recorder.off:
            recorder.used_autocast(str(self.device), str(self.fast_dtype))
        return original(self)

    return _replace(autocast, "__enter__", __enter__)


def _watch_profilers(recorder: "Recorder") -> Undo:
    profile: Any = torch.autograd.profiler.profile
    original = profile._prepare_trace

    @functools.wraps(original)
    def _prepare_trace(self: Any) -> Any:
        if not is_ours():
            recorder.foreign_profiler_starts()
        return original(self)

    return _replace(profile, "_prepare_trace", _prepare_trace)


def _forget(recorder: "Recorder") -> None:
    """In a forked child: it is no trainer until it steps an optimizer itself, and records nothing meanwhile."""
    if recorder.off:
        return
    if recorder.window.phase in ("recording", "places"):
        # The parent's profiler would go on collecting in here, with nobody to stop it.
        cast(Any, torch._C)._autograd._clear_callbacks()
        sys.setprofile(None)
        sys.settrace(None)
    recorder.forget()


def _without_this_frame(error: BaseException) -> None:
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        error.__traceback__ = error.__traceback__.tb_next
