"""Elementwise ops: operations per element of the result; a transcendental function counts as one."""

import functools

from slipstream.analysis.flops.call import Call, Tensor, Work, broadcast, moved

FAMILY = "elementwise"
UNARY = ("neg", "abs", "relu", "exp", "log", "log2", "log1p", "sqrt", "rsqrt", "tanh", "sin", "cos", "erf", "sgn")
BINARY = ("mul", "clamp_min", "clamp_max", "pow", "maximum", "minimum", "leaky_relu")
PER_ELEMENT = {
    **dict.fromkeys((*UNARY, "reciprocal", "floor"), (1, 1)),
    **dict.fromkeys(BINARY, (1, 2)),
    **dict.fromkeys(("add", "sub", "rsub", "div", "clamp", "where", "masked_fill", "threshold"), (1, 3)),
    **dict.fromkeys(("addcmul", "addcdiv"), (3, 4)),
    "lerp": (3, 3),
    "sigmoid": (4, 1),
    "silu": (5, 1),
    "gelu": (5, 2),
    "elu": (3, 4),
    "hardtanh": (2, 3),
    "hardswish": (4, 1),
    "softplus": (3, 3),
    "threshold_backward": (1, 3),
    "leaky_relu_backward": (1, 4),
    "sigmoid_backward": (3, 2),
    "tanh_backward": (3, 2),
    "silu_backward": (8, 2),
    "gelu_backward": (9, 3),
    "elu_backward": (3, 6),
    "native_dropout": (3, 3),
    "native_dropout_backward": (2, 3),
    "mse_loss_backward": (3, 4),
}
"""Operations per element, and how many arguments are inputs: what follows them is a result that was handed in.

Without ``aten::`` and without the underscore of ops that write into their input.
"""
COMPARISONS = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"), 2),
    **dict.fromkeys(("logical_not", "isnan", "isinf"), 1),
}
"""Their inputs. One operation; the result is of one byte per element."""


def elementwise(call: Call, *, operations: int, inputs: int, comparison: bool = False) -> Work | None:
    """Reads every input, writes one result of the shape to which they broadcast."""
    tensors = call.tensors(inputs)
    shape = broadcast(*(tensor.shape for tensor in tensors))
    if not tensors or shape is None:
        return None
    # A number without dimensions does not decide the type of the result.
    sizes = [tensor.size or 0 for tensor in tensors if tensor.shape] or [tensor.size or 0 for tensor in tensors]
    result = Tensor(shape=shape, size=1 if comparison else max(sizes))
    return Work(flops=operations * result.numel, moved_bytes=moved(*tensors, result))


FORMULAS = {
    f"aten::{name}{suffix}": functools.partial(elementwise, operations=operations, inputs=inputs)
    for name, (operations, inputs) in PER_ELEMENT.items()
    for suffix in ("", "_")
} | {
    f"aten::{name}{suffix}": functools.partial(elementwise, operations=1, inputs=inputs, comparison=True)
    for name, inputs in COMPARISONS.items()
    for suffix in ("", "_")
}
