"""Ops that move data: embedding and other look-ups, concatenation, copies, fills. They compute nothing."""

import math

from slipstream.analysis.flops.call import Call, Tensor, Work, moved

FAMILY = "indexing"
LIST_TYPES = "types inside a list are not recorded"


def index_select(call: Call) -> Work | None:
    """Input, dimension, indices: what is read is as much as what is written."""
    given, index, dimension = call.tensor(0), call.tensor(2), call.integers(1)
    if given is None or index is None or not given.shape or dimension is None:
        return None
    shape = list(given.shape)
    shape[dimension[0]] = index.numel
    return _looked_up(tuple(shape), given, index)


def embedding(call: Call) -> Work | None:
    """Weight [rows, width], indices."""
    weight, index = call.tensor(0), call.tensor(1)
    if weight is None or index is None or len(weight.shape) != 2:
        return None
    return _looked_up((*index.shape, weight.shape[1]), weight, index)


def gather(call: Call) -> Work | None:
    """Input, dimension, indices of the result's shape."""
    given, index = call.tensor(0), call.tensor(2)
    return None if given is None or index is None else _looked_up(index.shape, given, index)


def embedding_backward(call: Call) -> Work | None:
    """Gradient, indices, number of rows: every row of the gradient is added to one of the weight's."""
    grad, index, rows = call.tensor(0), call.tensor(1), call.integers(2)
    if grad is None or index is None or not grad.shape or rows is None:
        return None
    weight = Tensor(shape=(rows[0], grad.shape[-1]), size=grad.size)
    return Work(flops=grad.numel, moved_bytes=moved(grad, index, weight))


def concatenation(call: Call) -> Work | None:
    """A list of tensors, read and written once."""
    return Work(flops=0, moved_bytes=None, note=LIST_TYPES) if call.listed(0) else None


def copy(call: Call) -> Work | None:
    """What is written, what is read."""
    written, read = call.tensor(0), call.tensor(1)
    return None if written is None or read is None else Work(flops=0, moved_bytes=moved(written, read))


def fill(call: Call) -> Work | None:
    """Written once."""
    written = call.tensor(0)
    return None if written is None else Work(flops=0, moved_bytes=moved(written))


def _looked_up(shape: tuple[int, ...], source: Tensor, index: Tensor) -> Work:
    result = Tensor(shape=shape, size=source.size)
    # Of a source that is smaller than the result every element is read at least once; caches serve the rest.
    read = Tensor(shape=(min(math.prod(shape), source.numel),), size=source.size)
    return Work(flops=0, moved_bytes=moved(result, read, index))


FORMULAS = {
    "aten::index_select": index_select,
    "aten::embedding": embedding,
    "aten::gather": gather,
    "aten::embedding_dense_backward": embedding_backward,
    "aten::cat": concatenation,
    "aten::_cat": concatenation,
    "aten::copy_": copy,
    "aten::fill_": fill,
    "aten::zero_": fill,
}
