"""Metrics of arithmetic: operations, bytes, and the share of the device's peak."""

import polars as pl

from slipstream.store.column import Column, column
from slipstream.store.metrics.metric import Metric
from slipstream.store.recorded import TEXT


def _work(per: str) -> tuple[Column, ...]:
    return (
        column("flops", pl.Int64, f"floating-point operations {per}", "operations", "not known"),
        column("moved_bytes", pl.Int64, f"inputs and outputs {per}, each read or written once", "bytes", "not known"),
    )


OP_FLOPS = Metric(
    name="op_flops",
    kind="derived",
    meaning="Operations and bytes of every op for which there is a formula, from its recorded shapes.",
    definition=(
        "A multiplication with its addition counts as two operations. Matrix multiplication of m x k and k x n: 2mkn; "
        "the addition of a bias is not counted. Convolution: 2 x batch x positions of the output x elements of the "
        "weight (its backward the same again for the input and for the weight, as asked for). Attention: 2 x batch x "
        "heads x queries x keys x (head size + value size), half of it where is_causal is recorded as true; its "
        "backward 2.5 times that (5 multiplications, one of them recomputes the scores), of which 2 times are model "
        "operations. Norms, softmax and elementwise ops: a stated number of operations per element. Bytes assume "
        "that every input is read once and every output written once; elements that are repeated by a stride of 0 "
        "count once. An op is counted once: it is left out where an op inside it computes the same thing and has a "
        "formula. A convolution whose stride was not recorded takes its output's shape from a backward op with the "
        "same input and weight. Device work of ops inside that have no formula of their own counts as the op's; copies "
        "between host and device do not (see copy_bandwidth)."
    ),
    source=(
        "Textbook counts, the convention of torch.utils.flop_counter; FlashAttention-2 (Dao, 2023) for the factor of "
        "the backward pass."
    ),
    columns=(
        column("event", pl.UInt32, "event of the op"),
        column("family", TEXT, "matmul, convolution, attention, normalisation, softmax, elementwise, ..."),
        *_work("of the call"),
        column("model_flops", pl.Int64, "flops without what is computed again", "operations", "not known"),
        column(
            "precision",
            TEXT,
            "bf16, fp16, tf32, fp32, fp64, 8bit, or fp32_or_tf32: what it computed in",
            missing="not told",
        ),
        column("counted", pl.Boolean, "false where ops inside it are counted instead"),
        column("work_ns", pl.Int64, "device work of the op", "ns", "no device work in the recording"),
        column("note", TEXT, "what was assumed, or why figures are missing", missing="nothing"),
    ),
)

ROOFLINE = Metric(
    name="roofline",
    kind="derived",
    meaning="Ops of the window against what the device can do at most, by name, shapes and precision.",
    definition=(
        "attained = operations / device time; flops_share = that / the dense peak of the precision; bw_share = bytes / "
        "device time / the memory's peak. roofline_share = the least time that either peak allows / device time: 1 is "
        "all the device can do. bw_share above 1 means that data came from caches, flops_share above 1 that the "
        "algorithm multiplies less than the textbook (Winograd). Peaks are data rows with their source "
        "(model/hardware_peaks.csv), for all but matrix ops those of vector units (fp32). An unknown "
        "device, or fp32 matrices of which kernel names do not tell whether TF32 units were used, have no share, and "
        "the reason says so. Precision is that of the kernels' names "
        "first, of the inputs' types second."
    ),
    source="Roofline model: Williams, Waterman, Patterson (2009).",
    columns=(
        column("name", TEXT, "name of the op"),
        column("family", TEXT, "family of its formula"),
        column("input_dims", pl.String, "shapes of the inputs as JSON"),
        column("input_types", pl.String, "types of the inputs as JSON", missing="not recorded"),
        column("precision", TEXT, "what it computed in", missing="not told"),
        column("count", pl.Int64, "calls with device work"),
        *_work("of all calls"),
        column("work_ns", pl.Int64, "device work", "ns"),
        column("intensity", pl.Float64, "operations per byte", missing="not known"),
        column("attained_tflops", pl.Float64, "operations per time", "10^12/s", "not known"),
        column("attained_gbps", pl.Float64, "bytes per time", "10^9 bytes/s", "not known"),
        column("flops_share", pl.Float64, "of the peak of operations", missing="see reason"),
        column("bw_share", pl.Float64, "of the peak of memory", missing="see reason"),
        column("roofline_share", pl.Float64, "of what the nearer peak allows", missing="see reason"),
        column("bound", TEXT, "compute or memory: which peak is nearer", missing="see reason"),
        column("reason", TEXT, "why shares are missing", missing="nothing is"),
    ),
)

MFU = Metric(
    name="mfu",
    kind="derived",
    meaning="Model FLOPs utilisation of the window, one row per variant of the formula.",
    definition=(
        "mfu = sum over precisions of (operations / peak of that precision) / time of the window. Operations are "
        "those of matrix multiplications, convolutions and attention of the recorded ops (forward and backward) that "
        "did device work, not 6 x parameters x tokens. Variant model_flops leaves out what is computed again "
        "(activation checkpoints, the scores in attention's backward): the usual MFU. Variant hardware_flops counts "
        "them: HFU. Both are lower bounds as far as matrix work has no formula (custom and compiled kernels, graph "
        "replay): known_share is the share of the time of all compute kernels for which operations are known."
    ),
    source="PaLM (Chowdhery et al., 2022), appendix B, for the two notions; counted from this recording.",
    columns=(
        column("variant", TEXT, "model_flops or hardware_flops"),
        column("basis", TEXT, "what the time is: marks, inferred or recording (see window)"),
        column("steps", pl.Int64, "steps", missing="no steps known"),
        column("flops", pl.Int64, "operations in the window", "operations"),
        column("flops_per_step", pl.Int64, "that divided by the steps", "operations", "no steps known"),
        column("time_ns", pl.Int64, "length of the window", "ns"),
        column("attained_tflops", pl.Float64, "operations per time", "10^12/s"),
        column("peak_tflops", pl.Float64, "peak, of the mix of precisions", "10^12/s", "see reason"),
        column("mfu", pl.Float64, "share of the peak, 0..1", missing="see reason"),
        column("known_share", pl.Float64, "of compute kernels' time with known operations", missing="no device"),
        column("reason", TEXT, "why mfu is missing", missing="it is not"),
    ),
)

ARITHMETIC = (OP_FLOPS, ROOFLINE, MFU)
