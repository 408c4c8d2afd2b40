"""CMP001: attention runs as separate matrix products, masks and softmax, through tables of positions x positions."""

import math
from typing import ClassVar, cast

import msgspec
import numpy as np
import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.model.peaks import peaks_of
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import PLACE, PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

PRODUCTS = ("aten::bmm", "aten::baddbmm")
FORWARD = ("aten::_softmax", "aten::_safe_softmax")
BACKWARD = ("aten::_softmax_backward_data",)
FUSED = r"scaled_dot_product|flash_attn|_flash_attention|_efficient_attention|xformers|flex_attention"
"""Attention that is one call already, whichever kernels that call chooses."""
DROPOUT = r"^aten::(dropout|native_dropout|_fused_dropout|feature_dropout|bernoulli_?)$"
"""Ops that draw which scores to drop."""
OPS_BETWEEN = 40
"""A product and a softmax further apart than this many ops do not belong together; masks and casts take up to 30."""
FUSED_PEAK_SHARE = 0.35
"""Share of the 16-bit peak that a fused kernel is taken to reach in its products (FlashAttention-2 on H100)."""
SNIPPET = """\
# instead of softmax(q @ k.transpose(-2, -1) * scale + mask) @ v
out = torch.nn.functional.scaled_dot_product_attention(
    q, k, v, attn_mask=mask, dropout_p=dropout if self.training else 0.0, is_causal=False, scale=scale
)

# Hugging Face models
model = AutoModel.from_pretrained(name, attn_implementation="sdpa")"""


class UnfusedAttention(Rule):
    """Unfused attention.

    What it detects
    A batched matrix product, then a softmax, then another batched product, in sequence on one thread, whose shapes
    fit where shapes are recorded; in the backward pass likewise. What runs between the products (scale, mask,
    softmax, dropout, casts, copies) is the cost. Where the device's peaks and the shapes are known, the products
    count as well, less what they would take in a fused kernel. Attention through `scaled_dot_product_attention` or
    a flash attention library is left alone.

    Why it costs time
    The scores form a table of positions x positions for each head. Step by step each operation reads all of it from
    memory and writes it back. A fused kernel keeps a tile of the table on the chip and never writes it; its memory
    grows with the length of the sequence instead of its square.

    Fix
    `torch.nn.functional.scaled_dot_product_attention`, or the model's own switch for it
    (`attn_implementation="sdpa"`), which chooses the fastest kernel for device, type and mask.

    When not to
    Where the attention weights themselves are needed (`output_attentions=True`), or a mask or bias has a form that
    fused kernels do not take: then the call falls back to separate steps. On CPUs that is so for dropout, which is
    why attention with dropout is left alone there. Short sequences gain little. Fused dropout draws other random
    numbers, so single runs will not repeat number by number.

    Source
    Dao et al., "FlashAttention", NeurIPS 2022; Shah et al., "FlashAttention-3", NeurIPS 2024 (attained shares);
    PyTorch documentation of scaled_dot_product_attention.
    """

    code = "CMP001"
    name = "unfused attention"
    needs: ClassVar = {"window": (), "ops": (), "op_tree": ()}
    fix_class = "rounding"
    changes_random_stream = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find product, softmax, product and charge what lies between."""
        scope = scope_of(tables)
        if not tables["ops"].height:
            raise NotEnoughData("no host ops in this recording: record with activities=[CPU, CUDA]")
        found = _softmaxes(tables, scope)
        inside = found.filter("fused")
        if inside.height and inside.height == found.filter(~pl.col("backward")).height:
            return [
                self.dismissal(
                    f"attention goes through one call already, which ran in separate steps {inside.height:,} times: "
                    "see what keeps it from a fused kernel (mask, type, dropout on this device)"
                )
            ]
        # The backward of a fused call that fell back looks like that of unfused attention.
        found = found.filter(~pl.col("fused") & (~pl.col("backward") | pl.lit(not inside.height)))
        if not found.height:
            return []
        if not scope.on_device and _drops(tables, found):
            return [
                self.dismissal(
                    f"{found.filter(~pl.col('backward')).height:,} unfused attentions with dropout: on a CPU the fused "
                    "kernel takes no dropout, so one call would run the same steps"
                )
            ]
        rows = _with_costs(tables, scope, found)
        waits = host_waits_ns(tables, scope) if scope.on_device else None
        total = int(rows["cost_ns"].sum())
        if waits is not None and waits < total:
            rows = rows.with_columns(cost_ns=(pl.col("cost_ns") * (waits / total)).round().cast(pl.Int64))
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{found.height:,} unfused attentions, but the host does not wait for the {scope.worker}"
                )
            ]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """One call of scaled_dot_product_attention."""
        return Fix(
            summary="Call torch.nn.functional.scaled_dot_product_attention instead of the separate steps (in Hugging "
            "Face models: attn_implementation='sdpa'). Not where the attention weights themselves are needed; with "
            "dropout the random stream changes.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        shapes = place.rows["dims"].drop_nulls()
        table = f" over tables of {shapes[0]}" if len(shapes) else ""
        return self.finding(
            title=f"Attention in separate steps{table} costs {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'softmax')})"
            f"{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{duration(row['between_ns'])} between the two matrix products",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


class _Product(msgspec.Struct, frozen=True):
    """Sizes of one batched product ``[b, s, t] x [b, t, u]``."""

    b: int
    s: int
    t: int
    u: int

    @property
    def flops(self) -> int:
        return 2 * self.b * self.s * self.t * self.u


def _softmaxes(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Softmaxes between two products on their thread, with the rows of the products and what is known of each."""
    ops = tables["ops"].filter(pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns))
    ops = ops.with_columns(pl.col("name").cast(pl.String)).sort(
        "thread", "ts_ns", pl.col("dur_ns"), descending=[False, False, True]
    )
    ops = ops.with_columns(place=pl.int_range(pl.len()).over("thread"))
    keys = ops.filter(pl.col("name").is_in([*PRODUCTS, *FORWARD, *BACKWARD]))
    # _safe_softmax calls _softmax: the outer one stands for both.
    nested = pl.col("name").is_in(FORWARD) & (
        pl.col("ts_ns") < (pl.col("ts_ns") + pl.col("dur_ns")).shift(1).over("thread")
    )
    keys = keys.filter(~nested.fill_null(False))
    columns = ("event", "name", "ts_ns", "dur_ns", "place", "input_dims", "input_types")
    keys = keys.with_columns(
        *(pl.col(column).shift(1).over("thread").alias(f"before_{column}") for column in columns),
        *(pl.col(column).shift(-1).over("thread").alias(f"after_{column}") for column in columns),
    )
    near = (pl.col("place") - pl.col("before_place") <= OPS_BETWEEN) & (
        pl.col("after_place") - pl.col("place") <= OPS_BETWEEN
    )
    found = keys.filter(
        pl.col("name").is_in([*FORWARD, *BACKWARD])
        & pl.col("before_name").is_in(PRODUCTS)
        & pl.col("after_name").is_in(PRODUCTS)
        & near
    )
    found = found.with_columns(backward=pl.col("name").is_in(BACKWARD), fused=_inside(ops, found))
    return found.filter(pl.Series([_fits(row) for row in found.iter_rows(named=True)], dtype=pl.Boolean))


def _drops(tables: Tables, found: pl.DataFrame) -> bool:
    """Whether dropout runs between the products of any of these attentions."""
    drops = tables["ops"].filter(pl.col("name").cast(pl.String).str.contains(DROPOUT)).sort("ts_ns")
    for (thread,), mine in found.group_by("thread"):
        start = drops.filter(pl.col("thread") == thread)["ts_ns"].to_numpy()
        first = np.searchsorted(start, mine["before_ts_ns"].to_numpy())
        last = np.searchsorted(start, mine["after_ts_ns"].to_numpy())
        if (last > first).any():
            return True
    return False


def _inside(ops: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Whether each row lies inside a call of fused attention."""
    result = np.zeros(rows.height, bool)
    calls = ops.filter(pl.col("name").str.contains(FUSED))
    where = rows.with_row_index("row")
    for (thread,), mine in where.group_by("thread"):
        spans = calls.filter(pl.col("thread") == thread).sort("ts_ns")
        if not spans.height:
            continue
        # Calls nest: the furthest end reached so far tells whether one is still open.
        reached = np.maximum.accumulate((spans["ts_ns"] + spans["dur_ns"]).to_numpy())
        position = mine["ts_ns"].to_numpy()
        index = np.searchsorted(spans["ts_ns"].to_numpy(), position, side="right") - 1
        result[mine["row"].to_numpy()] = (index >= 0) & (position < reached[np.maximum(index, 0)])
    return pl.Series(result)


def _dims(text: str | None) -> list[list[int]]:
    """Shapes of an op's inputs; empty when not recorded."""
    if text is None:
        return []
    return [shape for shape in cast("list[list[int]]", msgspec.json.decode(text)) if isinstance(shape, list)]


def _fits(row: dict[str, object]) -> bool:
    """Whether the shapes are those of attention: as many scores as the softmax has elements; True if not recorded."""
    scores = next((shape for shape in _dims(cast("str | None", row["input_dims"])) if len(shape) >= 2), None)
    if scores is None or row["backward"]:
        return True
    first, second = _product(row, "before"), _product(row, "after")
    size = math.prod(scores)
    return (first is None or first.b * first.s * first.u == size) and (
        second is None or second.b * second.s * second.t == size
    )


def _product(row: dict[str, object], which: str) -> _Product | None:
    shapes = [shape for shape in _dims(cast("str | None", row[f"{which}_input_dims"])) if len(shape) == 3]
    if len(shapes) < 2:
        return None
    left, right = shapes[-2], shapes[-1]
    return _Product(left[0], left[1], left[2], right[2])


def _with_costs(tables: Tables, scope: Scope, found: pl.DataFrame) -> pl.DataFrame:
    """Each softmax with ``between_ns``, ``cost_ns``, its scores' shape (``dims``) and its place."""
    own = "device_self_ns" if scope.on_device else "self_ns"
    tree = (
        tables["op_tree"]
        .select("event", "thread", own)
        .join(tables["ops"].select("event", "ts_ns", "dur_ns"), on="event")
    )
    between = np.zeros(found.height, np.int64)
    where = found.with_row_index("row")
    for (thread,), mine in where.group_by("thread"):
        rows = tree.filter(pl.col("thread") == thread).sort("ts_ns")
        sums = np.concatenate([[0], np.cumsum(rows[own].to_numpy())])
        start = rows["ts_ns"].to_numpy()
        first = np.searchsorted(start, (mine["before_ts_ns"] + mine["before_dur_ns"]).to_numpy())
        last = np.searchsorted(start, mine["after_ts_ns"].to_numpy())
        between[mine["row"].to_numpy()] = sums[last] - sums[first]
    rows = found.with_columns(between_ns=pl.Series(between))
    products = _product_costs(tables, scope, rows)
    shapes = [next((shape for shape in _dims(text) if len(shape) >= 2), None) for text in rows["input_dims"]]
    rows = rows.with_columns(
        cost_ns=pl.col("between_ns") + products,
        dims=pl.Series([None if shape is None else " x ".join(map(str, shape)) for shape in shapes], dtype=pl.String),
    )
    if not tables.has("op_places"):
        return rows.with_columns(file=None, line=None, function=None, precision=None)
    return rows.join(tables["op_places"].select("event", *PLACE), on="event", how="left")


def _product_costs(tables: Tables, scope: Scope, found: pl.DataFrame) -> pl.Series:
    """Time of the two products of each attention beyond what they take in a fused kernel, where that can be told."""
    peaks = peaks_of(tables.source.device) if scope.on_device else None
    peak = (peaks.bf16_tflops or peaks.fp16_tflops) if peaks is not None else None
    cost = np.zeros(found.height, np.int64)
    if peak is None:
        return pl.Series(cost)
    products = pl.concat([found["before_event"], found["after_event"]])
    tree = tables["op_tree"].filter(pl.col("event").is_in(products.implode()))
    times = dict(tree.select("event", "device_total_ns").iter_rows())
    for place, row in enumerate(found.iter_rows(named=True)):
        types = row["before_input_types"] or ""
        if row["backward"] or not ("BFloat16" in types or "Half" in types):
            continue
        for which in ("before", "after"):
            product = _product(row, which)
            if product is not None:
                floor_ns = product.flops / (peak * FUSED_PEAK_SHARE * 1000)
                cost[place] += max(0, round(times[row[f"{which}_event"]] - floor_ns))
    return pl.Series(cost)
