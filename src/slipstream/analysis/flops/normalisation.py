"""Norms, forward and backward: operations per element as in their textbook formulas."""

import functools

from slipstream.analysis.flops.call import Call, Work, moved

FAMILY = "normalisation"
PER_ELEMENT = {
    # mean 1, centring 1, squares and their sum 2, scaling 1, affine 2
    "aten::native_layer_norm": 7,
    "aten::native_group_norm": 7,
    "aten::native_batch_norm": 7,
    "aten::cudnn_batch_norm": 7,
    "aten::miopen_batch_norm": 7,
    "aten::_batch_norm_with_update": 7,
    # squares and their sum 2, scaling 1, weight 1
    "aten::_fused_rms_norm": 4,
    # normalised values again 2, gradients of weight and bias 3, two sums 3, gradient of the input 4
    "aten::native_layer_norm_backward": 12,
    "aten::native_group_norm_backward": 12,
    "aten::native_batch_norm_backward": 12,
    "aten::cudnn_batch_norm_backward": 12,
    "aten::miopen_batch_norm_backward": 12,
    # normalised values again 1, gradient of the weight 2, one sum 2, gradient of the input 3
    "aten::_fused_rms_norm_backward": 8,
}


def per_element(call: Call, *, operations: int, inputs: int | None = None) -> Work | None:
    """Reads every input (of the first ``inputs`` arguments), writes one result of the first one's shape."""
    first = call.tensor(0)
    if first is None or not first.shape:
        return None
    return Work(flops=operations * first.numel, moved_bytes=moved(*call.tensors(inputs), first))


FORMULAS = {name: functools.partial(per_element, operations=count) for name, count in PER_ELEMENT.items()}
