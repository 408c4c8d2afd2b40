"""Matrix multiplications: two operations per multiplied pair; the addition of a bias is not counted."""

import functools
import math

from slipstream.analysis.flops.call import Call, Shape, Tensor, Work, broadcast, moved

FAMILY = "matmul"


def product(call: Call, *, left: int, right: int, added: int | None = None) -> Work | None:
    """Work of a product of the tensors at two positions, by the rules of ``torch.matmul``."""
    a, b = call.tensor(left), call.tensor(right)
    if a is None or b is None or not a.shape or not b.shape:
        return None
    one, other = a.shape if len(a.shape) > 1 else (1, *a.shape), b.shape if len(b.shape) > 1 else (*b.shape, 1)
    batch = broadcast(one[:-2], other[:-2])
    if batch is None or one[-1] != other[-2]:
        return None
    return _work(a, b, (*batch, one[-2], other[-1]), one[-1], call.tensor(added) if added is not None else None)


def summed_product(call: Call) -> Work | None:
    """``addbmm``: products of a batch, added up."""
    a, b = call.tensor(1), call.tensor(2)
    if a is None or b is None or len(a.shape) != 3 or len(b.shape) != 3 or a.shape[2] != b.shape[1]:
        return None
    return _work(a, b, (a.shape[1], b.shape[2]), a.shape[2] * a.shape[0], call.tensor(0))


def linear(call: Call) -> Work | None:
    """Input [..., k] and weight [n, k]."""
    given, weight = call.tensor(0), call.tensor(1)
    if given is None or weight is None or len(weight.shape) != 2 or not given.shape:
        return None
    if given.shape[-1] != weight.shape[1]:
        return None
    return _work(given, weight, (*given.shape[:-1], weight.shape[0]), weight.shape[1], call.tensor(2))


def _work(a: Tensor, b: Tensor, out: Shape, inner: int, added: Tensor | None) -> Work:
    result = Tensor(shape=out, size=added.size if added is not None else a.size)
    return Work(flops=2 * math.prod(out) * inner, moved_bytes=moved(a, b, added, result))


_PLAIN = functools.partial(product, left=0, right=1)
_ADDED = functools.partial(product, left=1, right=2, added=0)
FORMULAS = {
    "aten::mm": _PLAIN,
    "aten::bmm": _PLAIN,
    "aten::mv": _PLAIN,
    "aten::dot": _PLAIN,
    "aten::vdot": _PLAIN,
    "aten::matmul": _PLAIN,
    "aten::_int_mm": _PLAIN,
    "aten::_scaled_mm": _PLAIN,
    "aten::addmm": _ADDED,
    "aten::addmm_": _ADDED,
    "aten::_addmm_activation": _ADDED,
    "aten::addmv": _ADDED,
    "aten::addmv_": _ADDED,
    "aten::baddbmm": _ADDED,
    "aten::baddbmm_": _ADDED,
    "aten::addbmm": summed_product,
    "aten::linear": linear,
    "aten::mkldnn_linear": linear,
    "mkldnn::_linear_pointwise": linear,
}
