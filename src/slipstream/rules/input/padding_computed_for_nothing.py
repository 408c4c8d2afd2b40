"""INP006: the model computes positions that are padding beyond the longest sequence of their batch."""

from typing import ClassVar, cast

import polars as pl

from slipstream.forecast import Edit
from slipstream.model import Dismissal, Evidence, Finding, Fix, Location, NotEnoughData
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, percent
from slipstream.store import Tables

TRIMMABLE_SHARE = 0.10
"""Below this, rounding lengths up to a multiple of 8 (which 16-bit kernels like) takes most of what trimming gives."""
PER_POSITION = (
    r"^aten::(addmm|mm|bmm|baddbmm|matmul|linear|mkldnn_linear|_addmm_activation|_scaled_mm|softmax|_softmax"
    r"|_softmax_backward_data|_scaled_dot_product\w*|_flash_attention\w*|_efficient_attention\w*|_cudnn_attention\w*)$"
    r"|^mkl::|^mkldnn::|flash_attn"
)
"""Ops whose work grows at least in proportion to the number of positions."""
SNIPPET = """\
def trimmed(collate):
    \"\"\"A collate function that drops columns in which every sequence is padding.\"\"\"
    def wrap(samples):
        batch = collate(samples)
        used = batch["attention_mask"].any(dim=0).nonzero()
        first, last = int(used[0]), int(used[-1]) + 1      # works for padding on either side
        width = batch["attention_mask"].shape[1]
        return {
            key: value[:, first:last] if value.ndim > 1 and value.shape[1] == width else value
            for key, value in batch.items()
        }
    return wrap

loader = DataLoader(dataset, ..., collate_fn=trimmed(collate_fn))
# with Hugging Face: tokenize without padding="max_length" and use DataCollatorWithPadding(tokenizer)"""


class PaddingComputedForNothing(Rule):
    """Padding computed for nothing.

    What it detects
    The capture counts, for every batch, the positions that lie beyond its longest sequence. Where they are at
    least 10 % of all positions, the time of matrix multiplications and attention is charged with their share.

    Why it costs time
    Masks keep padding out of the loss, not out of the computation: every linear layer works on padded positions as
    on real ones, and attention on all pairs of positions. `padding="max_length"` makes each batch as expensive as
    the longest one ever.

    Fix
    Pad to the longest sequence of the batch instead of to a fixed length, in the collate function. Sorting samples
    of similar length into one batch saves more, but changes what a batch contains.

    When not to
    With compiled models or recorded graphs every new length is a new compilation: round lengths up to a few sizes.
    Where most of the padding lies inside the longest sequence of its batch, trimming saves little; the figure here
    counts only what trimming removes. With dropout the random numbers fall on other positions, so single runs will
    not repeat number by number.

    Source
    Hugging Face Transformers documentation, "Padding and truncation" and "Dynamic padding". The charge is in
    proportion to positions; attention saves more than that, since it grows with their square.
    """

    code = "INP006"
    name = "padding computed for nothing"
    needs: ClassVar = {"window": (), "loader_waits": (), "op_stats": ()}
    fix_class = "rounding"
    changes_random_stream = True
    treatment = "trim_padding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Charge per-position work with the share of positions that trimming would remove."""
        scope = scope_of(tables)
        batches = tables["loader_waits"].filter(
            pl.col("tokens").is_not_null() & pl.col("trimmable_tokens").is_not_null()
        )
        if not batches.height:
            raise NotEnoughData(
                "no attention mask or token ids were found in the batches: let the DataLoader yield a mapping with "
                "attention_mask, and record with `slipstream run`"
            )
        tokens = int(batches["tokens"].sum())
        share = int(batches["trimmable_tokens"].sum()) / tokens if tokens else 0.0
        if share < TRIMMABLE_SHARE:
            padding = int(batches["padding_tokens"].fill_null(0).sum()) / tokens if tokens else 0.0
            return [
                self.dismissal(
                    f"{percent(share)} of the positions lie beyond the longest sequence of their batch "
                    f"({percent(padding)} are padding in all)"
                )
            ]
        worked = _per_position_ns(tables)
        cost = round(worked * share)
        if scope.on_device:
            waits = host_waits_ns(tables, scope)
            cost = cost if waits is None else min(cost, waits)
        return [
            self.finding(
                title=f"{percent(share)} of what the model computes is padding that no sequence of its batch needs: "
                f"{duration(cost)} of {duration(scope.length_ns)}",
                cost_ns=cost,
                steps=scope.steps,
                location=_location(batches),
                evidence=_evidence(batches, scope),
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Pad to the longest sequence of the batch."""
        return Fix(
            summary="Pad each batch to its own longest sequence instead of to a fixed length. With torch.compile or "
            "graphs round lengths up to a few sizes, or every new length compiles anew. With dropout the random stream "
            "shifts: single runs differ, training does not.",
            snippet=SNIPPET,
        )

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """None: the cost is no ceiling, and how far shorter tensors run faster is not in the recording."""
        raise NotEnoughData(
            "shorter tensors save more than in proportion, so that the cost is no ceiling; slipstream tune measures it"
        )


def _per_position_ns(tables: Tables) -> int:
    stats = tables["op_stats"]
    return int(stats.filter(pl.col("name").cast(pl.String).str.contains(PER_POSITION))["self_ns"].sum())


def _location(batches: pl.DataFrame) -> Location | None:
    known = batches.with_columns(
        precision=pl.when(pl.col("line").is_not_null()).then(pl.lit("statement")), weight=pl.col("trimmable_tokens")
    )
    return dominant_place(known, "weight")


def _evidence(batches: pl.DataFrame, scope: Scope) -> list[Evidence]:
    """The batches of the window (else of the run) with most to trim."""
    recorded = batches.filter(pl.col("start_ns").is_between(scope.start_ns, scope.end_ns))
    rows = (recorded if recorded.height else batches).sort("trimmable_tokens", descending=True).head(3)
    return [
        Evidence(
            event="DataLoader.__next__",
            ts_ns=cast(int, row["start_ns"]),
            dur_ns=cast(int, row["dur_ns"]),
            note=f"{row['trimmable_tokens']:,} of {row['tokens']:,} positions lie beyond the longest sequence",
        )
        for row in rows.iter_rows(named=True)
    ]
