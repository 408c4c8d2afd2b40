"""CMP003: a convolution adds a bias that the normalisation behind it takes away again."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.places import by_place
from slipstream.rules.products import shapes
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import costliest, leaves, window_ops, with_savings
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

CONVOLUTIONS = ("aten::conv1d", "aten::conv2d", "aten::conv3d")
NORM = "aten::batch_norm"
ADDS = ("aten::add_", "aten::add")
BIAS = 2
"""Place of the bias among the inputs of a convolution."""
SNIPPET = """\
conv = torch.nn.Conv2d(64, 128, 3, bias=False)     # the mean is subtracted by the norm, and the bias with it
norm = torch.nn.BatchNorm2d(128)                   # it has a bias of its own"""


class ConvolutionBiasBeforeNorm(Rule):
    """Convolution bias before BatchNorm.

    What it detects
    Convolutions with a bias whose next op on the thread is a batch normalisation of their channels. Counted is the
    kernel that adds the bias, and in the backward pass the one that sums its gradient; without a device the time of
    these ops.

    Why it costs time
    Batch normalisation subtracts the mean of each channel, and a constant per channel with it: the bias has no
    effect, yet it is added to every number, and its gradient, which is zero, is summed up over all of them.

    Fix
    `bias=False` in convolutions in front of a batch normalisation.

    When not to
    With other normalisations (group, layer) the bias does have an effect. Loading a checkpoint that holds biases then
    needs `strict=False`; the running means in it already contain them, so fold them in first.

    Source
    PyTorch Performance Tuning Guide, "Disable bias for convolutions directly followed by a batch norm".
    """

    code = "CMP003"
    name = "convolution bias before norm"
    needs: ClassVar = {"window": (), "ops": ("input_dims",), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find biases in front of a normalisation, and what they cost."""
        scope = scope_of(tables)
        ops = window_ops(tables, scope)
        biased = _biased(ops)
        if not biased.height:
            return []
        told = f"{per_step(biased.height, scope.steps, 'convolution')} with a bias in front of a batch normalisation"
        rows = _bias_work(tables, scope, ops, biased)
        if not rows.height or not int(rows["cost_ns"].sum()):
            return [self.dismissal(f"{told}, which costs no time: the convolution adds it itself")]
        return [
            self.finding(
                title=f"{told}: adding it and summing its gradient takes {percent(scope.share(place.cost_ns))} of the "
                f"time ({duration(place.cost_ns)}) without effect{place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """No bias."""
        return Fix(
            summary="Make these convolutions with bias=False: the normalisation subtracts it. Fold biases of old "
            "checkpoints into the running means first.",
            snippet=SNIPPET,
        )


def _biased(ops: pl.DataFrame) -> pl.DataFrame:
    """Convolutions with a bias whose next sibling is a batch normalisation of their channels."""
    calls = ops.filter(
        pl.col("name").is_in([*CONVOLUTIONS, NORM]) | (pl.col("parent").is_null() & pl.col("depth").eq(0))
    ).sort("thread", "ts_ns")
    calls = calls.with_columns(
        next_name=pl.col("name").shift(-1).over("thread"), next_dims=pl.col("input_dims").shift(-1).over("thread")
    )
    rows = calls.filter(pl.col("name").is_in(CONVOLUTIONS) & (pl.col("next_name") == NORM))
    fits = [_fits(dims, after) for dims, after in rows.select("input_dims", "next_dims").iter_rows()]
    return rows.filter(pl.Series(fits, dtype=pl.Boolean))


def _fits(convolution: str | None, norm: str | None) -> bool:
    """Whether there is a bias, and the normalisation is one of as many channels."""
    inputs, normed = shapes(convolution), shapes(norm)
    if len(inputs) <= BIAS or not inputs[BIAS] or not normed or len(normed[0]) < 2:
        return False
    channels = inputs[1][0]
    return inputs[BIAS] == [channels] and normed[0][1] == channels


def _bias_work(tables: Tables, scope: Scope, ops: pl.DataFrame, biased: pl.DataFrame) -> pl.DataFrame:
    """Ops that add the bias, and those that sum its gradient, with the place of the convolution."""
    ends = biased.select("thread", "ts_ns", "end_ns", "event").rename({"event": "conv", "end_ns": "conv_end_ns"})
    inner = leaves(ops)
    adding = inner.filter(pl.col("name").is_in(ADDS)).sort("ts_ns")
    adding = adding.join_asof(ends.sort("ts_ns"), on="ts_ns", by="thread", check_sortedness=False)
    adding = adding.filter(pl.col("ts_ns") < pl.col("conv_end_ns")).drop("conv", "conv_end_ns")
    inside = ops.join(biased.select(root_of=pl.col("root")).unique(), left_on="root", right_on="root_of")
    sequences = inside["sequence"].drop_nulls().unique()
    backward = ops.filter(
        (pl.col("fwd_thread").fill_null(0) != 0)
        & pl.col("name").str.contains("ConvolutionBackward")
        & pl.col("sequence").is_in(sequences.implode())
    )
    summing = inner.filter((pl.col("name") == "aten::sum") & pl.col("root").is_in(backward["root"].implode()))
    return with_savings(tables, scope, pl.concat([adding, summing]).sort("thread", "ts_ns"))
