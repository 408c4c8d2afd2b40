"""Operations and bytes of every op for which there is a formula, from its recorded shapes."""

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.flops import MATRIX, formulas
from slipstream.analysis.flops.call import Call, Work, decoded
from slipstream.analysis.flops.convolution import OF_WEIGHT, completed
from slipstream.analysis.forward_ops import is_backward
from slipstream.analysis.kernel_types import Precision, is_matmul, is_matmul_of_op, precision_of_kernel
from slipstream.analysis.nesting import Longs, Nesting, nesting_of
from slipstream.analysis.op_modules import inherited
from slipstream.analysis.op_shapes import compact
from slipstream.model import NotEnoughData
from slipstream.store import Tables

Marks = npt.NDArray[np.bool_]

TEXTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")
OF_TYPE = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    **dict.fromkeys(("c10::Float8_e4m3fn", "c10::Float8_e5m2", "c10::Float8_e4m3fnuz", "c10::Float8_e5m2fnuz"), "8bit"),
}
"""What an op computes in by the type of its first input with one of these types."""
UNREADABLE = "shapes do not tell"


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``op_flops``, in the order of ``ops``; only ops that have a formula.

    Raises:
        NotEnoughData: shapes were not recorded.
    """
    ops = tables["ops"]
    if ops["input_dims"].null_count() == ops.height:
        raise NotEnoughData("shapes of inputs were not recorded: record with record_shapes=True")
    nesting = nesting_of(tables.trace, "ops")
    known = _formulas_applied(ops, nesting)
    flops = known["flops"].is_not_null().to_numpy()
    families = known["family"].cast(pl.String).fill_null("").to_numpy()
    counted = flops & ~_computed_inside(flops, families, nesting)
    again = _computed_again(tables, nesting)
    work = tables["device_work"]
    to_host = tables["copies"].filter(pl.col("kind").cast(pl.String).is_in(["HtoD", "DtoH"]))["event"]
    owner = inherited(np.where(counted, np.arange(ops.height), -1), nesting)
    work_ns, kernel = _device(work.filter(~pl.col("event").is_in(to_host.implode())), ops, owner)
    known = known.with_columns(
        model_flops=pl.when(pl.Series(again)).then(pl.lit(0, pl.Int64)).otherwise("model_flops"),
        counted=pl.Series(counted),
        work_ns=pl.Series(work_ns) if work.height else pl.lit(None, pl.Int64),
        kernel=kernel,
        event=ops["event"],
    )
    known = known.filter(pl.col("family").is_not_null())
    return known.with_columns(_precision(known, bool(work.height))).drop("kernel", "typed")


def _formulas_applied(ops: pl.DataFrame, nesting: Nesting) -> pl.DataFrame:
    """One row per op; null where there is no formula. Each distinct call is worked out once."""
    texts = ops.select(pl.col("name").cast(pl.String), *(compact(ops[name]) for name in TEXTS))
    needs_parent = pl.col("name").is_in(OF_WEIGHT)
    parent = texts["input_dims"].gather(pl.Series(nesting.parent).replace(-1, None))
    texts = texts.with_columns(around=pl.when(needs_parent).then(parent))
    table = formulas()
    distinct = texts.unique(maintain_order=True).filter(
        pl.col("name").is_in(list(table)), pl.col("input_dims").is_not_null()
    )
    calls = completed([_call(*row) for row in distinct.iter_rows()])
    results = [table[call.name][1](call) for call in calls]
    worked = distinct.hstack(
        pl.DataFrame(
            {
                "family": [table[call.name][0] for call in calls],
                "flops": [work and work.flops for work in results],
                "moved_bytes": [work and work.moved_bytes for work in results],
                "model_flops": [_model_flops(work) for work in results],
                "note": [work.note if work else UNREADABLE for work in results],
                "typed": [next((OF_TYPE[one] for one in call.types if one in OF_TYPE), None) for call in calls],
            },
            schema={
                "family": pl.String,
                "flops": pl.Int64,
                "moved_bytes": pl.Int64,
                "model_flops": pl.Int64,
                "note": pl.String,
                "typed": pl.String,
            },
        )
    )
    joined = texts.join(worked, on=["name", *TEXTS, "around"], how="left", nulls_equal=True, maintain_order="left")
    return joined.drop("name", *TEXTS, "around")


def _call(name: str, dims: str, types: str | None, strides: str | None, values: str | None, around: str | None) -> Call:
    return Call(
        name=name,
        dims=decoded(dims) or (),
        types=tuple(str(one) for one in decoded(types) or ()),
        strides=decoded(strides) or (),
        values=decoded(values) or (),
        around=decoded(around) or (),
    )


def _model_flops(work: Work | None) -> int | None:
    if work is None:
        return None
    return work.flops if work.model_flops is None else work.model_flops


def _computed_inside(known: Marks, family: npt.NDArray[np.object_], nesting: Nesting) -> Marks:
    """Whether an op inside computes what the op's own formula counts: one of its family, or of the matrix families."""
    kind = np.where(np.isin(family, MATRIX), "matrix", family)
    found = np.zeros(len(known), bool)
    for one in np.unique(kind[known]):
        mine = known & (kind == one)
        found |= mine & _around(mine, nesting)
    return found


def _around(marked: Marks, nesting: Nesting) -> Marks:
    """Whether a marked span lies inside each span."""
    found = np.zeros(len(marked), bool)
    order = np.argsort(-nesting.depth, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(nesting.depth[order])) + 1):
        here = level[(marked[level] | found[level]) & (nesting.parent[level] >= 0)]
        found[nesting.parent[here]] = True
    return found


def _computed_again(tables: Tables, nesting: Nesting) -> Marks:
    """Whether an op is part of a forward that is computed again inside a backward node.

    Ops of a genuine backward carry no sequence number, since no graph is built for them.
    """
    ops = tables["ops"]
    node = is_backward(ops)
    place = np.arange(ops.height)
    inside = inherited(np.where(node, place, -1), nesting) >= 0
    forward = inside & ~node & ops["sequence"].is_not_null().to_numpy()
    nearest = inherited(np.where(forward | node, place, -1), nesting)
    return np.where(nearest >= 0, forward[nearest], False)


def _device(work: pl.DataFrame, ops: pl.DataFrame, owner: Longs) -> tuple[Longs, pl.Series]:
    """Device work of the op that counts for each row of ``ops``, and the name of its longest matrix kernel."""
    places = ops.select(op_event="event", op="name").with_columns(owner=pl.Series(owner))
    rows = work.select("op_event", "name", "kind", "dur_ns").join(places, on="op_event").filter(pl.col("owner") >= 0)
    sums = np.zeros(ops.height, np.int64)
    np.add.at(sums, rows["owner"].to_numpy(), rows["dur_ns"].to_numpy())
    names = rows.select(pl.col("name", "op").cast(pl.String)).unique()
    matrix = [(name, op) for name, op in names.iter_rows() if is_matmul(name) or is_matmul_of_op(name, op)]
    schema = {"name": pl.String, "op": pl.String}
    rows = rows.filter(pl.col("kind") == "kernel").with_columns(pl.col("name", "op").cast(pl.String))
    longest = rows.join(pl.DataFrame(matrix, schema=schema, orient="row"), on=["name", "op"]).sort(
        "dur_ns", "name", descending=[True, False]
    )
    longest = longest.unique("owner", keep="first", maintain_order=True).select("owner", kernel="name")
    indexed = pl.DataFrame({"owner": np.arange(ops.height)})
    return sums, indexed.join(longest, on="owner", how="left", maintain_order="left")["kernel"]


def _precision(rows: pl.DataFrame, on_device: bool) -> pl.Series:
    """What each op computed in: by its kernel's name, else by the types of its inputs."""
    matrix = pl.col("family").is_in(MATRIX)
    keys = rows.select("kernel", "typed", matrix.alias("matrix")).unique()
    found = [_of(kernel, typed, is_matrix, on_device) for kernel, typed, is_matrix in keys.iter_rows()]
    keys = keys.with_columns(pl.Series("precision", found, pl.String))
    joined = rows.with_columns(matrix.alias("matrix")).join(
        keys, on=["kernel", "typed", "matrix"], how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["precision"]


def _of(kernel: str | None, typed: str | None, matrix: bool, on_device: bool) -> str | None:
    named: Precision | None = precision_of_kernel(kernel) if kernel and matrix else None
    if named == "16bit":
        if typed in ("bf16", "fp16"):
            return typed
        return "bf16" if kernel and ("bf16" in kernel.lower() or "bfloat16" in kernel.lower()) else "fp16"
    if named is not None:
        return named
    # Devices multiply float matrices in TF32 or in fp32: inputs do not tell which.
    return "fp32_or_tf32" if matrix and typed == "fp32" and on_device else typed
