"""Convolutions: 2 x batch x positions of the output x elements of the weight, forward, and again for each gradient.

In a transposed convolution input and output change places. Where the stride was not recorded the output's shape comes
from a backward call with the same input and weight, and a weight's shape from the call around or one with the same
input and output.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from slipstream.analysis.flops.call import Call, Shape, Tensor, Work, moved

FAMILY = "convolution"


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Positions of a forward convolution's arguments; None: it has no such argument."""

    stride: int
    padding: int
    dilation: int | None
    bias: int | None = 2
    transposed: int | bool = False
    """position of the flag, or what holds always"""
    output_padding: int | None = None


_GENERAL = Places(stride=3, padding=4, dilation=5, transposed=6, output_padding=7)
_PLAIN = Places(stride=3, padding=4, dilation=5)
_TRANSPOSED = Places(stride=3, padding=4, output_padding=5, dilation=7, transposed=True)
_CUDNN = Places(padding=2, stride=3, dilation=4, bias=None)
_MIOPEN = Places(padding=3, stride=4, dilation=5)
FORWARD = {
    "aten::convolution": _GENERAL,
    "aten::_convolution": _GENERAL,
    "aten::convolution_overrideable": _GENERAL,
    "aten::conv1d": _PLAIN,
    "aten::conv2d": _PLAIN,
    "aten::conv3d": _PLAIN,
    "aten::conv_transpose1d": _TRANSPOSED,
    "aten::conv_transpose2d": _TRANSPOSED,
    "aten::conv_transpose3d": _TRANSPOSED,
    "aten::cudnn_convolution": _CUDNN,
    "aten::cudnn_convolution_relu": _PLAIN,
    "aten::cudnn_convolution_transpose": Places(
        padding=2, output_padding=3, stride=4, dilation=5, bias=None, transposed=True
    ),
    "aten::miopen_convolution": _MIOPEN,
    "aten::miopen_depthwise_convolution": _MIOPEN,
    "aten::mkldnn_convolution": _MIOPEN,
    "aten::_slow_conv2d_forward": Places(bias=3, stride=4, padding=5, dilation=None),
    "aten::_conv_depthwise2d": Places(bias=3, stride=4, padding=5, dilation=6),
}
BACKWARD = {
    "aten::convolution_backward": (1, 0, 2, 10),
    "aten::convolution_backward_overrideable": (1, 0, 2, 9),
    "aten::cudnn_convolution_backward": (0, 1, 2, 10),
    "aten::miopen_convolution_backward": (0, 1, 2, 9),
    "aten::mkldnn_convolution_backward": (0, 1, 2, 7),
}
"""Positions of input, gradient of the output, weight and of the mask that tells which gradients are wanted."""
OF_INPUT = ("aten::cudnn_convolution_backward_input", "aten::miopen_convolution_backward_input")
"""Arguments: size of the input, gradient of the output, weight."""
OF_WEIGHT = ("aten::cudnn_convolution_backward_weight", "aten::miopen_convolution_backward_weight")
"""Arguments: size of the weight, gradient of the output, input."""


def forward(call: Call) -> Work | None:
    """Work of a forward convolution."""
    places = FORWARD[call.name]
    given, weight = call.tensor(0), call.tensor(1)
    if given is None or weight is None or len(given.shape) != len(weight.shape) or len(weight.shape) < 3:
        return None
    transposed = places.transposed if isinstance(places.transposed, bool) else bool(call.flag(places.transposed))
    out = _output(call, places, given.shape, weight.shape, transposed) or call.completed
    if out is None:
        return None
    flops = _flops(given.shape, weight.shape, out, transposed)
    bias = call.tensor(places.bias) if places.bias is not None else None
    note = None if call.integers(places.stride) is not None else "output's shape from a backward call"
    return Work(flops=flops, moved_bytes=moved(given, weight, bias, Tensor(shape=out, size=given.size)), note=note)


def backward(call: Call) -> Work | None:
    """Work of both gradients, as far as they were asked for."""
    at_input, at_grad, at_weight, at_mask = BACKWARD[call.name]
    given, grad, weight = call.tensor(at_input), call.tensor(at_grad), call.tensor(at_weight)
    if given is None or grad is None or weight is None:
        return None
    transposed = call.name == "aten::convolution_backward" and bool(call.flag(7))
    mask = call.flags(at_mask)
    wanted = mask[:2] if mask else (True, True)
    once = _flops(given.shape, weight.shape, grad.shape, transposed)
    results = [tensor for tensor, want in zip((given, weight), wanted, strict=False) if want]
    return Work(
        flops=once * len(results),
        moved_bytes=moved(grad, *([weight] if wanted[0] else []), *([given] if wanted[-1] else []), *results),
        note=None if mask else "both gradients assumed: the mask was not recorded",
    )


def of_input(call: Call) -> Work | None:
    """Work of the gradient of the input alone; the input has about the output's share of positions."""
    grad, weight = call.tensor(1), call.tensor(2)
    if grad is None or weight is None or len(grad.shape) < 3:
        return None
    return Work(flops=_flops((), weight.shape, grad.shape, False), moved_bytes=None)


def of_weight(call: Call) -> Work | None:
    """Work of the gradient of the weight alone, whose shape another call tells."""
    grad, given, weight = call.tensor(1), call.tensor(2), call.completed
    if grad is None or given is None or weight is None:
        return None
    written = Tensor(shape=weight, size=given.size)
    return Work(flops=_flops((), weight, grad.shape, False), moved_bytes=moved(grad, given, written))


def completed(calls: Sequence[Call]) -> list[Call]:
    """Calls with the one shape that their own arguments do not tell, where other calls tell exactly one."""
    known = list(_known(calls))
    outputs = _unique(((given, weight), out) for given, weight, out in known)
    weights = _unique(((given, out), weight) for given, weight, out in known)
    found = []
    for call in calls:
        shape = None
        if call.name in FORWARD:
            shape = outputs.get((call.shape(0), call.shape(1)))
        elif call.name in OF_WEIGHT:
            shape = _weight_around(call) or weights.get((call.shape(2), call.shape(1)))
        found.append(msgspec.structs.replace(call, completed=shape) if shape else call)
    return found


def _weight_around(call: Call) -> Shape | None:
    """The weight among the inputs of the op around a gradient of the weight: input, gradient of the output, weight."""
    if len(call.around) < 3 or list(call.around[:2]) != [call.dims[2], call.dims[1]]:
        return None
    weight = call.around[2]
    return tuple(weight) if isinstance(weight, list) and weight else None


def _known(calls: Iterable[Call]) -> Iterable[tuple[Shape, Shape, Shape]]:
    for call in calls:
        if call.name in BACKWARD:
            given, grad, weight = (call.shape(at) for at in BACKWARD[call.name][:3])
            if given and grad and weight:
                yield given, weight, grad


def _unique(pairs: Iterable[tuple[tuple[Shape, Shape], Shape]]) -> dict[tuple[Shape | None, Shape | None], Shape]:
    seen: dict[tuple[Shape | None, Shape | None], set[Shape]] = {}
    for key, value in pairs:
        seen.setdefault(key, set()).add(value)
    return {key: next(iter(values)) for key, values in seen.items() if len(values) == 1}


def _flops(given: Shape, weight: Shape, out: Shape, transposed: bool) -> int:
    positions = given if transposed else out
    return 2 * positions[0] * math.prod(positions[2:]) * math.prod(weight)


def _output(call: Call, places: Places, given: Shape, weight: Shape, transposed: bool) -> Shape | None:
    spatial = len(given) - 2
    stride = _spread(call.integers(places.stride), spatial)
    padding = _spread(call.integers(places.padding), spatial)
    dilation = _spread(call.integers(places.dilation) if places.dilation is not None else (1,), spatial)
    if stride is None or padding is None or dilation is None:
        return None
    kernel = weight[2:]
    if transposed:
        extra = _spread(call.integers(places.output_padding) if places.output_padding is not None else (0,), spatial)
        if extra is None:
            return None
        extents = tuple(
            (given[2 + at] - 1) * stride[at] - 2 * padding[at] + dilation[at] * (kernel[at] - 1) + extra[at] + 1
            for at in range(spatial)
        )
        # The weight's second extent is the output's channels per group; groups do not change the count of operations.
        return (given[0], weight[1], *extents)
    extents = tuple(
        (given[2 + at] + 2 * padding[at] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1
        for at in range(spatial)
    )
    return (given[0], weight[0], *extents) if min(extents) > 0 else None


def _spread(values: Shape | None, count: int) -> Shape | None:
    """One value for all dimensions, or one each."""
    if not values:
        return None
    return values * count if len(values) == 1 else values if len(values) == count else None


_FORMULAS: tuple[tuple[Iterable[str], Callable[[Call], Work | None]], ...] = (
    (FORWARD, forward),
    (BACKWARD, backward),
    (OF_INPUT, of_input),
    (OF_WEIGHT, of_weight),
)
FORMULAS = {name: formula for names, formula in _FORMULAS for name in names}
