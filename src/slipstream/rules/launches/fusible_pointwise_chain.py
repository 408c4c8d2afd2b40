"""LCH004: elementwise ops in a row read and write the same tensors again and again."""

import math
from typing import ClassVar

import polars as pl

from slipstream.forecast import Edit
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.places import PlaceCost, at_place, by_place
from slipstream.rules.products import shapes
from slipstream.rules.rule import Rule
from slipstream.rules.savings import without_ops
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import FIXED_NS, leaves, marks, window_ops, with_savings, within
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

LENGTH = 3
"""Ops from which on it is a chain: shorter ones come with every residual connection and activation."""
_CHEAP = (
    "add|sub|rsub|mul|div|neg|abs|square|reciprocal|relu|clamp|clamp_min|clamp_max|where|lerp|addcmul|addcdiv|maximum"
    "|minimum|masked_fill|threshold_backward|eq|ne|lt|gt|le|ge|logical_and|logical_or|logical_not|logical_xor"
    "|bitwise_and|bitwise_or|bitwise_not|sign|leaky_relu|leaky_relu_backward|hardtanh|hardtanh_backward|hardswish"
    "|hardswish_backward|hardsigmoid|hardsigmoid_backward|floor|ceil|round|trunc"
)
_COSTLY = (
    "pow|sqrt|rsqrt|exp|expm1|exp2|log|log1p|log2|sigmoid|sigmoid_backward|tanh|tanh_backward|sin|cos|erf|gelu"
    "|gelu_backward|silu|silu_backward|mish|mish_backward|softplus|softplus_backward|elu|elu_backward|remainder|fmod"
)
"""On a CPU these take time of their own, which fusing does not save."""
POINTWISE = rf"^aten::({_CHEAP}|{_COSTLY})_?$"
COSTLY = rf"^aten::({_COSTLY})_?$"
VIEWS = (
    r"^aten::(as_strided_?|view|_unsafe_view|_reshape_alias|reshape|expand|t|transpose|permute|detach_?|alias|unsqueeze_?"
    r"|squeeze_?|select|slice|narrow|empty\w*|new_empty\w*|resolve_conj|resolve_neg|resize_|result_type|to|lift_fresh)$"
    r"|^detach_?$"
)
"""Ops that touch no element."""
CALL = r"^\w+::"
"""Ops; nodes of the backward pass have other names, and their work is in the ops that they call."""
ACCUMULATION = "AccumulateGrad"
LEFT = (0.6, 0.2, 0.0)
"""What stays of all but the longest op: fused in part, fused, fused and free."""
SNIPPET = """\
@torch.compile                       # one kernel for the whole chain, in forward and backward
def scaled(x, shift, scale):
    return torch.clamp((x + shift) * scale, -1, 1) / scale

# or fewer passes by hand
x = torch.add(shift, x, alpha=scale)  # one op for shift + scale * x
x = x.mul_(scale)                     # in place, where the old value is not needed again"""


class FusiblePointwiseChain(Rule):
    """Fusible pointwise chain.

    What it detects
    Three and more elementwise ops in a row on one thread (views aside) on tensors of the same shape, outside the
    optimizer and the adding up of gradients. All of a chain but its longest op is counted: on a device the kernels,
    as far as the host waits for the device, and the idle time while the host launched them; without a device the
    time of ops that only move numbers, and of others (`exp`, `tanh`, `pow`) the fixed cost of the call.

    Why it costs time
    Such an op does next to nothing per element; it reads and writes memory. A chain of five reads and writes
    everything five times, with five launches, and autograd keeps intermediates as well. One fused kernel reads the
    inputs once and writes the result once.

    Fix
    `torch.compile` on the function or module; or fewer passes by hand: ops that do two things (`addcmul`, `lerp`,
    `add` with `alpha`), in-place variants, constants folded together, a built-in function for the whole formula
    (`gelu(approximate="tanh")`, `rms_norm`).

    When not to
    Compiling takes seconds to minutes and repeats for new shapes. In-place ops must not overwrite what the backward
    pass needs (PyTorch raises an error if so). Fused arithmetic rounds differently in the last digit. The recording
    does not tell which tensor an op read: ops of equal shape that work on unrelated tensors gain less.

    Source
    PyTorch Performance Tuning Guide, "Fuse operations".
    """

    code = "LCH004"
    name = "fusible pointwise chain"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "rounding"
    treatment = "compile_model"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find chains and add up all of each but its longest op."""
        scope = scope_of(tables)
        ops = window_ops(tables, scope)
        if not ops["name"].str.contains(POINTWISE).any():
            return []
        if ops["input_dims"].null_count() == ops.height:
            raise NotEnoughData("shapes were not recorded: record with record_shapes=True")
        chained = _chains(tables, scope, ops)
        if not chained.height:
            return []
        chains = chained["chain"].n_unique()
        rows = _rest(tables, scope, chained)
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{per_step(chains, scope.steps, 'chain')} of elementwise ops, but neither does the host wait for "
                    f"the {scope.worker} nor the {scope.worker} for the host meanwhile"
                )
            ]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """Of each chain its longest op stays, and a part of the others."""
        scope = scope_of(tables)
        rows = _rest(tables, scope, _chains(tables, scope, window_ops(tables, scope)))
        share = f"{LEFT[2] * 100:.0f} to {LEFT[0] * 100:.0f} %"
        assumption = f"{share} of the time of all but the longest op of a chain stay once it is fused"
        return without_ops(tables, scope, at_place(rows, finding.location), LEFT, assumption)

    def fix(self, finding: Finding) -> Fix:
        """Compile it, or do it in fewer passes."""
        return Fix(
            summary="Put torch.compile on the function, or make fewer passes by hand: ops that do two things (addcmul, "
            "lerp, add with alpha), in-place variants, one built-in function for the formula. Compiling takes a while "
            "and repeats for new shapes.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        length = round(float(str(place.rows["length"].mean())))
        return self.finding(
            title=f"Elementwise ops in chains of about {length} cost {percent(scope.share(place.cost_ns))} of the time "
            f"beyond what one pass would take ({duration(place.cost_ns)} in "
            f"{per_step(place.rows['chain'].n_unique(), scope.steps, 'chain')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"one of {row['length']} in a row over {' x '.join(map(str, row['shape'])) or 'one element'}",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _chains(tables: Tables, scope: Scope, ops: pl.DataFrame) -> pl.DataFrame:
    """Ops in chains, with ``chain``, ``length`` and ``shape``."""
    # What an elementwise op calls (a cast of its scalar) does not break a chain: the outermost such op stands for it.
    pointwise = pl.col("name").str.contains(POINTWISE)
    reached = pl.when(pointwise).then("end_ns").cum_max().shift(1).forward_fill().over("thread")
    outside = ~(pl.col("ts_ns") < reached).fill_null(False)
    total = pl.col("device_total_ns" if scope.on_device else "dur_ns").fill_null(0)
    others = leaves(ops)["event"]
    name = pl.col("name")
    calls = name.str.contains(CALL) & ~name.str.starts_with("autograd::") & ~name.str.contains(VIEWS)
    breaks = pl.col("event").is_in(others.implode()) & calls
    steps = ops.with_columns(work_ns=total).filter(outside & (pointwise | breaks))
    if scope.on_device:
        steps = steps.filter(pl.col("work_ns") > 0)
    nodes = ops.filter(pl.col("name").str.contains(ACCUMULATION, literal=True))["event"]
    apart = within(steps, marks(tables, r"^Optimizer\.step#")) | steps["root"].is_in(nodes.implode()).fill_null(False)
    shape = pl.Series("shape", [_result(dims) for dims in steps["input_dims"]], dtype=pl.List(pl.Int64))
    steps = steps.with_columns(shape, apart=apart, links=steps["name"].str.contains(POINTWISE) & ~apart)
    begins = (
        ~pl.col("links")
        | ~pl.col("links").shift(1).fill_null(False)
        | pl.col("shape").ne_missing(pl.col("shape").shift(1))
        | pl.col("thread").ne_missing(pl.col("thread").shift(1))
    )
    steps = steps.with_columns(chain=begins.cum_sum()).filter(pl.col("links") & pl.col("shape").is_not_null())
    return steps.with_columns(length=pl.len().over("chain")).filter(pl.col("length") >= LENGTH)


def _result(dims: str | None) -> list[int] | None:
    """The largest of the input shapes, which is that of an elementwise result unless both sides broadcast."""
    known = shapes(dims)
    return max(known, key=math.prod) if known else None


def _without_longest(chained: pl.DataFrame) -> pl.DataFrame:
    longest = chained.sort("work_ns", "ts_ns", descending=[True, False]).unique("chain", keep="first")
    return chained.join(longest.select("event"), on="event", how="anti", maintain_order="left")


def _rest(tables: Tables, scope: Scope, chained: pl.DataFrame) -> pl.DataFrame:
    """All of each chain but its longest op, with what each costs."""
    rest = _without_longest(chained)
    if not scope.on_device:
        rest = rest.with_columns(
            work_ns=pl.when(pl.col("name").str.contains(COSTLY))
            .then(pl.min_horizontal("work_ns", FIXED_NS))
            .otherwise("work_ns")
        )
    return with_savings(tables, scope, rest)
