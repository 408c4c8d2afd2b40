"""Kernels of optimizers over lists of parameters: operations per parameter."""

import functools

from slipstream.analysis.flops.call import Call, Work
from slipstream.analysis.flops.elementwise import PER_ELEMENT as ELEMENTWISE
from slipstream.analysis.flops.indexing import LIST_TYPES

FAMILY = "optimizer"
PER_ELEMENT = {
    # weight decay 2, first moment 3, second moment 4, corrections 2, root, sum, quotient and step 4
    "aten::_fused_adam_": 15,
    "aten::_fused_adamw_": 15,
    # weight decay 2, momentum 2, step 2
    "aten::_fused_sgd_": 6,
    # square and sum 3, root, sum, quotient and step 4
    "aten::_fused_adagrad_": 7,
    **{f"aten::_foreach_{name}{suffix}": count for name, (count, _) in ELEMENTWISE.items() for suffix in ("", "_")},
    "aten::_foreach_norm": 2,
}


def over_list(call: Call, *, operations: int) -> Work | None:
    """The tensors of the first list decide."""
    parameters = call.listed(0)
    if not parameters:
        return None
    return Work(flops=operations * sum(one.numel for one in parameters), moved_bytes=None, note=LIST_TYPES)


FORMULAS = {name: functools.partial(over_list, operations=count) for name, count in PER_ELEMENT.items()}
