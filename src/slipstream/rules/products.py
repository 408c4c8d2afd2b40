"""Multiplications that ops of matrix products make, by the recorded shapes of their inputs."""

from typing import cast

import msgspec
import polars as pl

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
"""Ops that compute one product each and call no other of these."""

ELEMENT_BYTES = {
    "bool": 1,
    "unsigned char": 1,
    "signed char": 1,
    "short": 2,
    "short int": 2,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "int": 4,
    "float": 4,
    "long": 8,
    "long int": 8,
    "double": 8,
}
"""Bytes of one element, by the type's name in recordings."""


def shapes(input_dims: str | None) -> list[list[int]]:
    """Shapes of an op's inputs, empty lists for scalars; lists of tensors are left out; [] when not recorded."""
    if input_dims is None:
        return []
    found = cast("list[object]", msgspec.json.decode(input_dims))
    return [
        cast("list[int]", shape)
        for shape in found
        if isinstance(shape, list) and all(isinstance(size, int) for size in shape)
    ]


def matrices(name: str, input_dims: str | None) -> tuple[int, int, int, int] | None:
    """Sizes b, m, k, n of a product ``[b, m, k] x [b, k, n]`` (b = 1 without a batch).

    Args:
        name: of the op.
        input_dims: as recorded.
    Returns:
        None where the op is no product, or shapes are unknown or do not fit.
    """
    if name not in PRODUCTS:
        return None
    rank = 3 if "bmm" in name else 2
    operands = [shape for shape in shapes(input_dims) if len(shape) == rank]
    if len(operands) < 2:
        return None
    left, right = operands[-2], operands[-1]  # what is added comes before the factors
    if left[-1] != right[-2] or (rank == 3 and left[0] != right[0]):
        return None
    return (left[0] if rank == 3 else 1), left[-2], left[-1], right[-1]


def with_flops(ops: pl.DataFrame) -> pl.DataFrame:
    """Those of some ops that are products, with the sizes ``b``, ``m``, ``k``, ``n`` and ``flops``.

    Args:
        ops: the columns name (text) and input_dims; products of unknown shape are left out.
    """
    products = ops.filter(pl.col("name").is_in(PRODUCTS))
    kinds = products.select("name", "input_dims").unique(maintain_order=True)
    sizes = [matrices(name, dims) for name, dims in kinds.iter_rows()]
    known = kinds.with_columns(
        pl.Series(letter, [None if size is None else size[place] for size in sizes], dtype=pl.Int64)
        for place, letter in enumerate("bmkn")
    )
    joined = products.join(known, on=["name", "input_dims"], how="inner", maintain_order="left", nulls_equal=True)
    return joined.drop_nulls("b").with_columns(flops=2 * pl.col("b") * pl.col("m") * pl.col("k") * pl.col("n"))
