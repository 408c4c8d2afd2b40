"""Constructors that are given other arguments than the job's own."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any


def with_arguments(kind: type, wanted: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
    """Have a class constructed with further arguments from now on.

    Args:
        kind: the class.
        wanted: gets the arguments that the job gave, by name, without defaults; returns those to add or replace, or
            None to leave the job's as they are.
    """
    original = kind.__init__  # type: ignore[misc]
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(instance: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
        try:
            bound = signature.bind(instance, *args, **kwargs)
        except TypeError:  # the class itself tells what is wrong
            original(instance, *args, **kwargs)
            return
        more = wanted(bound.arguments)
        if more is None:
            original(instance, *args, **kwargs)
            return
        bound.arguments.update(more)
        original(*bound.args, **bound.kwargs)

    kind.__init__ = __init__  # type: ignore[misc]
