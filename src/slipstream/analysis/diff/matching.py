"""Which op of one recording stands for which of the other.

Kernels have other names on another vendor's device, and after most changes of a library. The op that launched them
has the same, or an op around it has: what runs under ``aten::cudnn_convolution`` here and under
``aten::miopen_convolution`` there is matched as ``aten::convolution``.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.diff.identity import Longs, Ops
from slipstream.model.difference import MatchedBy

KEY = ("module", "op", "shapes", "kernel", "matched_by")
_SEPARATOR = "\x1f"


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """What both recordings tell, so that it can be matched by."""

    modules: bool
    shapes: bool

    @property
    def order(self) -> Sequence[MatchedBy]:
        """The ways of matching, the strictest first."""
        strict: list[MatchedBy] = ["module_op_shape"] if self.modules else []
        return [*strict, "op_shape"] if self.shapes else [*strict, "op"]


def levels_of(a: Ops, b: Ops) -> Levels:
    """The ways of matching that both recordings allow."""
    return Levels(
        modules=bool(a.modules.count() and b.modules.count()), shapes=bool(a.shapes.count() and b.shapes.count())
    )


def keys(mine: Ops, other: Ops, op: Longs, levels: Levels) -> pl.DataFrame:
    """What the work of each op is compared under.

    At the strictest level at which the op, or one around it, works in the other recording as well: the innermost of
    those. Where there is none, it stands for itself.

    Args:
        mine: ops of the recording.
        other: those of the other one.
        op: index of the op of each piece of work; -1: none.
        levels: ways of matching.
    Returns:
        Columns module, op, shapes and matched_by; op is null where none is known.
    """
    chosen = np.full(len(op), -1, np.int64)
    level_of = np.full(len(op), len(levels.order) - 1, np.int64)
    open_ = op >= 0
    for number, level in enumerate(levels.order):
        target = _innermost_shared(mine, _shared(mine, other, level, levels))
        found = np.where(open_, np.append(target, -1)[op], -1)
        taken = found >= 0
        chosen[taken], level_of[taken] = found[taken], number
        open_ &= ~taken
    chosen = np.where(open_, op, chosen)
    place = pl.Series(chosen).replace(-1, None)
    matched = pl.Series(list(levels.order), dtype=pl.String).gather(level_of.tolist())
    frame = pl.DataFrame(
        {
            "module": mine.modules.gather(place),
            "op": mine.names.gather(place),
            "shapes": mine.shapes.gather(place),
            "matched_by": matched,
        }
    )
    with_module = pl.col("matched_by") == "module_op_shape"
    return frame.with_columns(
        module=pl.when(with_module).then("module"),
        shapes=pl.col("shapes") if levels.shapes else pl.lit(None, pl.String),
        matched_by=pl.when(pl.col("op").is_null()).then(pl.lit("kernel")).otherwise("matched_by"),
    )


def _shared(mine: Ops, other: Ops, level: MatchedBy, levels: Levels) -> npt.NDArray[np.bool_]:
    """Whether an op like each works in the other recording as well."""
    theirs = _words(other, level, levels).filter(pl.Series(other.working)).unique()
    return _words(mine, level, levels).is_in(theirs.implode()).fill_null(False).to_numpy() & mine.working


def _words(ops: Ops, level: MatchedBy, levels: Levels) -> pl.Series:
    """One word per op; null where what the level asks for is not known of it."""
    parts = [ops.names]
    if level == "module_op_shape":
        parts.append(ops.modules)
    if levels.shapes:
        parts.append(ops.shapes.fill_null(""))
    frame = pl.DataFrame({str(number): part for number, part in enumerate(parts)})
    return frame.select(word=pl.concat_str(pl.all(), separator=_SEPARATOR))["word"]


def _innermost_shared(mine: Ops, shared: npt.NDArray[np.bool_]) -> Longs:
    """For each op itself where it is shared, else the innermost op around it that is; -1: none."""
    target = np.arange(len(shared), dtype=np.int64)
    climbing = np.flatnonzero(~shared)
    while len(climbing):
        target[climbing] = mine.parent[target[climbing]]
        climbing = climbing[target[climbing] >= 0]
        climbing = climbing[~shared[target[climbing]]]
    return target


def merged_by_op(a: pl.DataFrame, b: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Let what found no partner be matched by the name of the op alone: the shapes or the modules differ.

    Args:
        a: pieces of work with the columns of ``KEY`` and part.
        b: those of the other recording.
    """
    columns = ["part", *KEY]
    only_a = a.select(columns).unique().join(b.select(columns).unique(), on=columns, how="anti", nulls_equal=True)
    only_b = b.select(columns).unique().join(a.select(columns).unique(), on=columns, how="anti", nulls_equal=True)
    both = ["part", "op"]
    names = only_a.select(both).drop_nulls("op").unique().join(only_b.select(both).unique(), on=both)
    return _without_shapes(a, only_a.join(names, on=both)), _without_shapes(b, only_b.join(names, on=both))


def _without_shapes(rows: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    columns = ["part", *KEY]
    marked = changed.select(columns).with_columns(merge=pl.lit(True))
    joined = rows.join(marked, on=columns, how="left", nulls_equal=True, maintain_order="left")
    merge = pl.col("merge").fill_null(False)
    return joined.with_columns(
        module=pl.when(~merge).then("module"),
        shapes=pl.when(~merge).then("shapes"),
        matched_by=pl.when(merge).then(pl.lit("op")).otherwise("matched_by"),
    ).drop("merge")
