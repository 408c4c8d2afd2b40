"""Reductions: operations per element of the input."""

import functools
import math

from slipstream.analysis.flops.call import Call, Tensor, Work, moved

FAMILY = "reduction"
PER_ELEMENT = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "any", "all", "cumsum"), 1
    ),
    "linalg_vector_norm": 2,
    "norm": 2,
    "var": 4,
    "std": 4,
    "var_mean": 4,
    "logsumexp": 4,
    "mse_loss": 3,
}
_DIMENSIONS = {"sum": 1, "mean": 1, "amax": 1, "amin": 1, "argmax": 1, "argmin": 1, "linalg_vector_norm": 2}
"""Position of the dimensions that are reduced."""
_SAME_SHAPE = ("cumsum",)


def reduction(call: Call, *, operations: int) -> Work | None:
    """Reads the first input; the result is small against them unless the dimensions tell otherwise."""
    given = call.tensor(0)
    if given is None or not given.shape:
        return None
    result = Tensor(shape=_kept(call, given.shape), size=given.size)
    return Work(flops=operations * given.numel, moved_bytes=moved(given, result))


def _kept(call: Call, shape: tuple[int, ...]) -> tuple[int, ...]:
    name = call.name.removeprefix("aten::")
    if name in _SAME_SHAPE:
        return shape
    at = _DIMENSIONS.get(name)
    reduced = call.integers(at) if at is not None else None
    if not reduced or not all(-len(shape) <= one < len(shape) for one in reduced):
        return (1,)
    gone = {one % len(shape) for one in reduced}
    return (math.prod(extent for at, extent in enumerate(shape) if at not in gone),)


FORMULAS = {f"aten::{name}": functools.partial(reduction, operations=count) for name, count in PER_ELEMENT.items()}
