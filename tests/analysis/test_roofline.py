"""Operations per op call, the roofline and the utilisation of a recording."""

import json
from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from slipstream.store import Tables
from support.tables import make_tables, span, step

H100 = "NVIDIA H100 80GB HBM3"
BF16 = "c10::BFloat16"


def product(ts_ns: int, dur_ns: int, m: int, k: int, n: int, dtype: str = BF16, **columns: Any) -> dict[str, Any]:
    shapes = {"input_dims": json.dumps([[m, k], [k, n]]), "input_types": json.dumps([dtype, dtype])}
    return span("aten::mm", ts_ns, dur_ns, **shapes, **columns)


def recording(*ops: dict[str, Any], work_ns: int = 1_000, kernel: str = "nvjet_tst_bf16", **further: Any) -> Tables:
    """Each op launches one kernel of the same length."""
    launches = [
        span("cudaLaunchKernel", op["ts_ns"] + 1, 1, correlation=1 + at, thread=op.get("thread", 0))
        for at, op in enumerate(ops)
    ]
    kernels = [span(kernel, 100_000 + work_ns * at, work_ns, correlation=1 + at) for at in range(len(ops))]
    arguments = {"steps": [step(1, 0, 200_000)], "device": H100, **further}
    return make_tables(ops=list(ops), runtime=launches, kernels=kernels, **arguments)


def rows(tables: Tables, name: str) -> list[dict[str, Any]]:
    return tables[name].with_columns(pl.col(pl.Categorical).cast(pl.String)).rows(named=True)


def test_an_op_is_counted_where_it_is_innermost_and_takes_the_kernels_of_what_it_holds() -> None:
    linear = span("aten::linear", 0, 100, input_dims="[[64, 32], [16, 32], []]", input_types='["float", "float", ""]')
    copy = span("aten::copy_", 20, 5, input_dims="[[16, 32], [16, 32], []]", input_types='["float", "float", "Scalar"]')
    unknown = span("aten::reshape", 50, 30)
    tables = make_tables(
        ops=[linear, copy, unknown, product(55, 20, 64, 32, 16, "float"), span("aten::resize_", 60, 5)],
        runtime=[span("cudaLaunchKernel", ts, 1, correlation=ts) for ts in (22, 52, 62)],
        kernels=[span("k", ts + 100, ts, correlation=ts) for ts in (22, 52, 62)],
    )
    found = [(row["family"], row["flops"], row["counted"], row["work_ns"]) for row in rows(tables, "op_flops")]
    assert found == [
        ("matmul", 65_536, False, 0),
        ("indexing", 0, True, 22),
        ("matmul", 65_536, True, 62),
    ]


def test_shares_of_the_right_peaks() -> None:
    # 989 x 10^12 per second for 16-bit matrices, 3,350 x 10^9 bytes per second.
    tables = recording(product(0, 10, 512, 1_024, 512), work_ns=2_000)
    row = rows(tables, "roofline")[0]
    flops, moved = 2 * 512 * 1_024 * 512, 2 * (512 * 1_024 * 2 + 512 * 512)
    assert (row["flops"], row["moved_bytes"], row["work_ns"], row["precision"]) == (flops, moved, 2_000, "bf16")
    assert row["attained_tflops"] == pytest.approx(flops / 2e-6 / 1e12)
    assert row["flops_share"] == pytest.approx(flops / 2e-6 / 989e12)
    assert row["bw_share"] == pytest.approx(moved / 2e-6 / 3_350e9)
    assert row["roofline_share"] == pytest.approx(max(row["flops_share"], row["bw_share"]))
    assert row["bound"] == ("compute" if row["flops_share"] > row["bw_share"] else "memory")
    assert row["reason"] is None


def test_the_kernels_name_tells_the_precision_and_what_nobody_tells_has_no_share() -> None:
    one = product(0, 10, 64, 64, 64, "float")
    assert rows(recording(one, kernel="sm80_xmma_gemm_f32f32_tf32f32"), "roofline")[0]["precision"] == "tf32"
    assert rows(recording(one, kernel="volta_sgemm_128x64"), "roofline")[0]["precision"] == "fp32"
    unknown = rows(recording(one, kernel="some_gemm"), "roofline")[0]
    assert (unknown["flops_share"], unknown["roofline_share"]) == (None, None)
    assert unknown["reason"] == "kernel names do not tell fp32 from TF32"
    # A device without such units has but one way.
    v100 = rows(recording(one, kernel="some_gemm", device="Tesla V100-SXM2-32GB"), "roofline")[0]
    assert v100["flops_share"] == pytest.approx(2 * 64**3 / 1e-6 / 15.7e12)


def test_an_unknown_device_is_unknown() -> None:
    tables = recording(product(0, 10, 64, 64, 64), device="NVIDIA H100 MIG 1g")
    row = rows(tables, "roofline")[0]
    assert (row["flops_share"], row["bw_share"]) == (None, None)
    assert row["attained_tflops"] is not None
    assert row["reason"] == "peaks of NVIDIA H100 MIG 1g are not known"
    utilisation = rows(tables, "mfu")[0]
    assert (utilisation["mfu"], utilisation["reason"]) == (None, row["reason"])
    assert utilisation["flops"] == 2 * 64**3


def test_copies_to_the_host_are_no_matter_of_the_devices_memory() -> None:
    copy = span("aten::copy_", 0, 10, input_dims="[[8], [8], []]", input_types='["float", "float", "Scalar"]')
    tables = make_tables(
        device=H100,
        ops=[copy, product(20, 10, 8, 8, 8)],
        runtime=[span("cudaMemcpyAsync", 2, 3, correlation=1), span("cudaLaunchKernel", 22, 3, correlation=2)],
        copies=[span("Memcpy DtoH", 50, 100, correlation=1, kind="DtoH")],
        kernels=[span("nvjet_bf16", 200, 100, correlation=2)],
    )
    assert [row["name"] for row in rows(tables, "roofline")] == ["aten::mm"]


def test_utilisation_by_hand_with_recomputation_apart() -> None:
    def op(ts_ns: int, **columns: Any) -> dict[str, Any]:
        return product(ts_ns, 10, 256, 256, 256, **columns)

    tables = recording(
        op(0, sequence=1, fwd_thread=0),
        op(120, thread=5),  # genuine backward: no graph is built, no number is given
        op(140, thread=5, sequence=9, fwd_thread=0),  # a checkpoint's forward, again
    )
    again = make_tables(
        steps=[step(1, 0, 100_000), step(2, 100_000, 100_000)],
        device=H100,
        ops=[
            *tables["ops"].rows(named=True),
            span("MmBackward0", 110, 100, thread=5, sequence=1, fwd_thread=1, event=900),
        ],
        runtime=tables["runtime"].rows(named=True),
        kernels=tables["kernels"].rows(named=True),
    )
    model, hardware = rows(again, "mfu")
    once = 2 * 256**3
    assert (model["variant"], model["flops"], model["flops_per_step"]) == ("model_flops", 2 * once, once)
    assert (hardware["variant"], hardware["flops"]) == ("hardware_flops", 3 * once)
    assert (model["time_ns"], model["steps"], model["basis"], model["known_share"]) == (200_000, 2, "marks", 1.0)
    assert model["mfu"] == pytest.approx(2 * once / 989e12 / 200e-6)
    assert model["peak_tflops"] == pytest.approx(989)
    assert 0 < model["mfu"] < hardware["mfu"] < 1


def test_kernels_without_a_formula_make_it_a_lower_bound() -> None:
    custom = span("my::fused", 50, 10)
    tables = recording(product(0, 10, 64, 64, 64), custom)
    assert rows(tables, "mfu")[0]["known_share"] == 0.5


def test_a_convolution_finds_its_output_in_its_backward() -> None:
    shapes = {"input_types": '["float", "float", "float"]'}
    tables = make_tables(
        ops=[
            span("aten::cudnn_convolution", 0, 10, input_dims="[[2,8,32,32],[16,8,3,3]]", **shapes),
            span(
                "aten::cudnn_convolution_backward", 50, 30, input_dims="[[2,8,32,32],[2,16,16,16],[16,8,3,3]]", **shapes
            ),
            span("aten::cudnn_convolution_backward_input", 52, 5, input_dims="[[],[2,16,16,16],[16,8,3,3]]", **shapes),
            span(
                "aten::cudnn_convolution_backward_weight", 60, 5, input_dims="[[],[2,16,16,16],[2,8,32,32]]", **shapes
            ),
        ]
    )
    once = 2 * 2 * 256 * 16 * 8 * 9
    assert [(row["flops"], row["counted"]) for row in rows(tables, "op_flops")] == [
        (once, True),
        (2 * once, False),
        (once, True),
        (once, True),
    ]


def test_nothing_is_made_up_without_shapes() -> None:
    plain = make_tables(ops=[span("aten::mm", 0, 10)])
    for name in ("op_flops", "roofline", "mfu"):
        with pytest.raises(NotEnoughData, match="record_shapes"):
            plain[name]
    cut = span("aten::mm", 0, 10, input_dims="[[64, 32], [", input_types="[")
    (row,) = rows(make_tables(ops=[cut]), "op_flops")
    assert (row["flops"], row["note"], row["counted"]) == (None, "shapes do not tell", False)


def test_on_a_cpu_operations_are_known_and_the_peak_is_not() -> None:
    tables = make_tables(steps=[step(1, 0, 1_000)], ops=[product(0, 500, 64, 64, 64, "float")])
    row = rows(tables, "mfu")[0]
    assert (row["flops"], row["mfu"], row["known_share"]) == (2 * 64**3, None, None)
    assert row["reason"] == "the recording does not name its device"
    with pytest.raises(NotEnoughData, match="no device work"):
        tables["roofline"]
