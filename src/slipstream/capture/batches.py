"""What a batch tells of itself: samples, positions, padding. Counted on host memory, without a single op."""

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

LARGEST = 4_000_000
"""Elements up to which a mask or ids are read: a few milliseconds."""
DEPTH = 3
"""How deep batches are searched."""

_REAL = ("attention_mask", "input_mask", "encoder_attention_mask", "mask")
"""Keys of masks whose ones are real positions."""
_PADDING = ("padding_mask", "key_padding_mask", "src_key_padding_mask")
"""Keys of masks whose ones are padding."""
_IDS = ("input_ids", "tokens", "token_ids")
_INTEGERS = {
    "torch.int64": np.int64,
    "torch.int32": np.int32,
    "torch.int16": np.int16,
    "torch.int8": np.int8,
    "torch.uint8": np.uint8,
    "torch.bool": np.bool_,
}


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one batch; None: not known."""

    samples: int | None = None
    positions: int | None = None
    padding: int | None = None
    trimmable: int | None = None
    """Positions in columns that no sequence of the batch uses."""


def describe(batch: object) -> Batch:
    """Count a batch.

    Args:
        batch: whatever a data loader yields. Tensors on a device are not looked into: that would wait for it.
    """
    tensors = list(_tensors(batch, DEPTH))
    samples = _first_length(tensors)
    used = _from_mask(tensors)
    if used is not None:
        return _counted(samples, used)
    for name, tensor in tensors:
        if name in _IDS and _readable(tensor):
            ids = _values(tensor)
            used = _without_constant_tail(ids)
            if used is None:
                return Batch(samples=samples, positions=ids.size)
            return _counted(samples, used)
    return Batch(samples=samples)


def samples_of(batch: object) -> int | None:
    """Samples of a batch: the length of its first tensor; None: there is none."""
    return _first_length(_tensors(batch, DEPTH))


def _first_length(tensors: Iterable[tuple[str, Any]]) -> int | None:
    return next((int(tensor.shape[0]) for _, tensor in tensors if tensor.dim()), None)


def _counted(samples: int | None, used: npt.NDArray[np.bool_]) -> Batch:
    columns = np.flatnonzero(used.any(axis=0))
    width = int(columns[-1] - columns[0]) + 1 if len(columns) else 0
    return Batch(
        samples=samples,
        positions=used.size,
        padding=used.size - int(np.count_nonzero(used)),
        trimmable=used.shape[0] * (used.shape[1] - width),
    )


def _from_mask(tensors: Sequence[tuple[str, Any]]) -> npt.NDArray[np.bool_] | None:
    """Which positions are real, by a mask with a name that says so, or by a nameless one that looks like it."""
    for names, real in ((_REAL, True), (_PADDING, False)):
        for wanted in names:
            for name, tensor in tensors:
                if name == wanted and _readable(tensor):
                    values = _values(tensor)
                    if _is_binary(values):
                        return np.asarray((values != 0) == real)
    nameless = [tensor for name, tensor in tensors if not name and _readable(tensor)]
    for tensor in nameless:
        if any(other is not tensor and other.shape == tensor.shape for other in nameless):
            values = _values(tensor)
            if _is_binary(values) and _is_prefix(values != 0):
                return np.asarray(values != 0)
    return None


def _is_binary(values: npt.NDArray[Any]) -> bool:
    return values.dtype == np.bool_ or (values.size > 0 and bool(values.min() >= 0) and bool(values.max() == 1))


def _is_prefix(used: npt.NDArray[np.bool_]) -> bool:
    """Whether every row is a run of ones followed by zeros: a mask of lengths, not some label."""
    return bool(used[:, 0].all()) and not bool((used[:, 1:] & ~used[:, :-1]).any())


def _without_constant_tail(ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Positions before a tail of one value that most rows end with; None where they do not."""
    if ids.shape[1] < 2:
        return None
    tails = ids[ids[:, -1] == ids[:, -2], -1]
    values, counts = np.unique(tails, return_counts=True)
    if not len(values) or 2 * counts.max() <= ids.shape[0]:
        return None
    tail = np.logical_and.accumulate((ids == values[counts.argmax()])[:, ::-1], axis=1)[:, ::-1]
    return ~tail


def _readable(tensor: Any) -> bool:
    return (
        tensor.dim() == 2
        and str(tensor.layout) == "torch.strided"
        and str(tensor.dtype) in _INTEGERS
        and tensor.device.type == "cpu"
        and tensor.is_contiguous()
        and 0 < tensor.numel() <= LARGEST
    )


def _values(tensor: Any) -> npt.NDArray[Any]:
    """A view of the tensor's memory. ``Tensor.numpy`` would do the same with ops that show up in the recording."""
    dtype = np.dtype(_INTEGERS[str(tensor.dtype)])
    memory = (ctypes.c_char * (tensor.numel() * dtype.itemsize)).from_address(tensor.data_ptr())
    return np.frombuffer(memory, dtype=dtype).reshape(tuple(tensor.shape))


def _tensors(batch: object, depth: int, name: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors in a batch with the key each was found under, "" where there was none."""
    if hasattr(batch, "data_ptr") and hasattr(batch, "is_contiguous"):
        if type(batch).__module__ == "torch":
            yield name, batch
    elif depth:
        for key, value in _parts(batch):
            yield from _tensors(value, depth - 1, key)


def _parts(batch: object) -> Iterable[tuple[str, object]]:
    if isinstance(batch, Mapping):
        return ((key if isinstance(key, str) else "", value) for key, value in batch.items())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return zip(batch._fields, batch, strict=True)
    if isinstance(batch, (list, tuple)) and len(batch) <= 64:
        return (("", value) for value in batch)
    data = getattr(batch, "data", None)  # BatchEncoding and other UserDicts
    return _parts(data) if isinstance(data, Mapping) else ()
