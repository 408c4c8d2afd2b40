"""One recorded call of an op, as formulas see it: shapes, types and scalar inputs, decoded."""

import functools
import math

import msgspec

Shape = tuple[int, ...]

SIZES: dict[str, int] = {
    "float": 4,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "double": 8,
    "long int": 8,
    "long": 8,
    "int": 4,
    "short int": 2,
    "short": 2,
    "signed char": 1,
    "unsigned char": 1,
    "bool": 1,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}
"""Bytes of an element by the name under which recordings write its type; only tensors have such types."""


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor among the inputs."""

    shape: Shape
    size: int | None
    """bytes of an element; None: not told (tensors in a list)"""
    strides: Shape | None = None

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def stored(self) -> int:
        """Elements that exist in memory: those repeated by a stride of 0 count once."""
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.numel
        return math.prod(extent for extent, stride in zip(self.shape, self.strides, strict=True) if stride)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a call computes and moves."""

    flops: int
    moved_bytes: int | None
    model_flops: int | None = None
    """None: the same as flops."""
    note: str | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call; positions are those of the op's arguments."""

    name: str
    dims: tuple[object, ...]
    types: tuple[str, ...]
    strides: tuple[object, ...] = ()
    values: tuple[object, ...] = ()
    """scalar inputs as text, "" where there is none; empty: not recorded"""
    around: tuple[object, ...] = ()
    """shapes of the inputs of the op around it"""
    completed: Shape | None = None
    """the one shape that its arguments do not tell, found elsewhere in the recording"""

    def tensor(self, at: int) -> Tensor | None:
        """The tensor at a position; None: there is none, or it is something else."""
        if at >= len(self.dims) or at >= len(self.types) or self.types[at] not in SIZES:
            return None
        shape = _shape(self.dims[at])
        if shape is None:
            return None
        strides = _shape(self.strides[at]) if at < len(self.strides) else None
        return Tensor(shape=shape, size=SIZES[self.types[at]], strides=strides)

    def shape(self, at: int) -> Shape | None:
        """Shape of the tensor at a position, unless it has no dimensions."""
        tensor = self.tensor(at)
        return tensor.shape if tensor is not None and tensor.shape else None

    def listed(self, at: int) -> tuple[Tensor, ...]:
        """Tensors of the list at a position; the types in a list are not recorded."""
        inner = self.dims[at] if at < len(self.dims) else None
        if not isinstance(inner, list):
            return ()
        shapes = [_shape(one) for one in inner if isinstance(one, list)]
        return tuple(Tensor(shape=shape, size=None) for shape in shapes if shape is not None)

    def tensors(self, count: int | None = None) -> tuple[Tensor, ...]:
        """Tensors that are arguments by themselves, of the first ``count`` ones (None: of all)."""
        found = (self.tensor(at) for at in range(len(self.dims))[:count])
        return tuple(tensor for tensor in found if tensor is not None)

    def flag(self, at: int) -> bool | None:
        """A recorded truth value; None: not recorded."""
        text = self._text(at)
        return {"True": True, "False": False}.get(text) if text else None

    def flags(self, at: int) -> tuple[bool, ...] | None:
        """A recorded list of truth values, such as ``[True, False]``."""
        parts = _parts(self._text(at))
        return tuple(part == "True" for part in parts) if parts else None

    def integers(self, at: int) -> Shape | None:
        """A recorded list of integers, or one integer as a list of one; None: not recorded."""
        text = self._text(at)
        if not text:
            return None
        parts = _parts(text) if text.startswith("[") else (text,)
        try:
            return tuple(int(part) for part in parts)
        except ValueError:
            return None

    def _text(self, at: int) -> str:
        value = self.values[at] if at < len(self.values) else ""
        return value if isinstance(value, str) else ""


def moved(*tensors: Tensor | None) -> int | None:
    """Bytes of tensors that are each read or written once; None where the size of an element is not told."""
    given = [tensor for tensor in tensors if tensor is not None]
    if any(tensor.size is None for tensor in given):
        return None
    return sum(tensor.stored * (tensor.size or 0) for tensor in given)


def broadcast(*shapes: Shape) -> Shape | None:
    """The shape to which shapes broadcast; None: they do not."""
    rank = max(map(len, shapes), default=0)
    filled = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    found = []
    for extents in zip(*filled, strict=True):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            return None
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.strip("[] ").split(",") if part.strip())


def _shape(given: object) -> Shape | None:
    if not isinstance(given, list) or not all(isinstance(extent, int) and extent >= 0 for extent in given):
        return None
    return tuple(given)


@functools.lru_cache(maxsize=65_536)
def decoded(text: str | None) -> tuple[object, ...] | None:
    """A recorded JSON list; None where there is none or it cannot be read (recordings cut long ones)."""
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return tuple(found) if isinstance(found, list) else None
