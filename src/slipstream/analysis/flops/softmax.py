"""Softmax and its logarithm: greatest, difference, exponential, sum, quotient per element."""

import functools

from slipstream.analysis.flops.normalisation import per_element

FAMILY = "softmax"
PER_ELEMENT = {
    "aten::_softmax": 5,
    "aten::_log_softmax": 5,
    "aten::_safe_softmax": 5,
    # product, sum, difference, product
    "aten::_softmax_backward_data": 4,
    "aten::_log_softmax_backward_data": 4,
}
FORMULAS = {name: functools.partial(per_element, operations=count, inputs=2) for name, count in PER_ELEMENT.items()}
