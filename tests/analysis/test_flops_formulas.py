"""Operations and bytes by formula, against counts made by hand and against torch's own signatures."""

from typing import Any

import pytest

from slipstream.analysis.flops import attention, convolution, elementwise, formulas, reduction
from slipstream.analysis.flops.call import Call, Work

BF16, FP32, FP16 = "c10::BFloat16", "float", "c10::Half"


def work(name: str, *arguments: Any, completed: tuple[int, ...] | None = None) -> Work | None:
    """Arguments: (shape, type) for a tensor, text for a scalar, None where nothing was given."""
    tensors = [argument if isinstance(argument, tuple) else None for argument in arguments]
    call = Call(
        name=name,
        dims=tuple(list(one[0]) if one else [] for one in tensors),
        types=tuple(one[1] if one else "Scalar" for one in tensors),
        values=tuple(argument if isinstance(argument, str) else "" for argument in arguments),
        completed=completed,
    )
    return formulas()[name][1](call)


def counts(name: str, *arguments: Any, **further: Any) -> tuple[int, int | None]:
    found = work(name, *arguments, **further)
    assert found is not None
    return found.flops, found.moved_bytes


def test_matrix_products() -> None:
    a, b = ((2, 3), BF16), ((3, 4), BF16)
    assert counts("aten::mm", a, b) == (2 * 2 * 3 * 4, 2 * (6 + 12 + 8))
    assert counts("aten::addmm", ((4,), BF16), a, b, "1", "1") == (48, 2 * (4 + 6 + 12 + 8))
    assert counts("aten::bmm", ((5, 2, 3), FP32), ((5, 3, 4), FP32)) == (5 * 48, 4 * 5 * 26)
    assert counts("aten::baddbmm", ((5, 2, 4), FP32), ((5, 2, 3), FP32), ((5, 3, 4), FP32))[0] == 5 * 48
    assert counts("aten::addbmm", ((2, 4), FP32), ((5, 2, 3), FP32), ((5, 3, 4), FP32))[0] == 5 * 48
    assert counts("aten::linear", ((7, 2, 3), FP32), ((4, 3), FP32), ((4,), FP32)) == (
        14 * 3 * 4 * 2,
        4 * (42 + 16 + 56),
    )
    assert counts("aten::matmul", ((7, 1, 2, 3), FP32), ((5, 3, 4), FP32))[0] == 7 * 5 * 48
    assert counts("aten::matmul", ((3,), FP32), ((3, 4), FP32))[0] == 24
    assert counts("aten::mv", ((2, 3), FP32), ((3,), FP32))[0] == 12
    assert work("aten::mm", a, ((4, 4), BF16)) is None
    assert work("aten::mm", a, None) is None


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "out"),
    [("[1]", "[0]", "[1]", 30), ("[2,2]", "[3,3]", "[1,1]", 18), ("[1]", "[1]", "[2]", 30), ("[4]", "[0]", "[1]", 8)],
)
def test_convolutions(stride: str, padding: str, dilation: str, out: int) -> None:
    kernel = 3
    given, weight = ((2, 8, 32, 32), FP16), ((16, 4, kernel, kernel), FP16)
    flops = 2 * 2 * out * out * 16 * 4 * kernel * kernel
    size = 2 * (2 * 8 * 32 * 32 + 16 * 4 * 9 + 2 * 16 * out * out)
    assert counts("aten::conv2d", given, weight, None, stride, padding, dilation, "2") == (flops, size)
    assert counts("aten::cudnn_convolution", given, weight, padding, stride, dilation, "2")[0] == flops
    assert counts("aten::miopen_convolution", given, weight, None, padding, stride, dilation, "2")[0] == flops
    both = counts(
        "aten::convolution_backward",
        *(((2, 16, out, out), FP16), given, weight, None, stride, padding, dilation, "False", "[0]", "2"),
        "[True, True, False]",
    )
    assert both[0] == 2 * flops
    only_weight = counts(
        "aten::convolution_backward",
        *(((2, 16, out, out), FP16), given, weight, None, stride, padding, dilation, "False", "[0]", "2"),
        "[False, True, False]",
    )
    assert only_weight[0] == flops


def test_a_transposed_convolution_counts_positions_of_its_input() -> None:
    flops, size = counts(
        "aten::conv_transpose2d", ((2, 8, 5, 5), FP32), ((8, 3, 4, 4), FP32), None, "[2]", "[1]", "[0]", "1", "[1]"
    )
    assert flops == 2 * 2 * 25 * 8 * 3 * 16
    assert size == 4 * (2 * 8 * 25 + 8 * 3 * 16 + 2 * 3 * 10 * 10)


def test_a_stride_that_was_not_recorded_is_not_guessed() -> None:
    given, weight = ((2, 8, 32, 32), FP32), ((16, 8, 3, 3), FP32)
    assert work("aten::cudnn_convolution", given, weight) is None
    found = work("aten::cudnn_convolution", given, weight, completed=(2, 16, 16, 16))
    assert found is not None
    assert (found.flops, found.note) == (2 * 2 * 256 * 16 * 8 * 9, "output's shape from a backward call")


def test_attention_forward_backward_and_causal() -> None:
    q, kv = ((2, 4, 10, 8), BF16), ((2, 4, 30, 8), BF16)
    full = 2 * 2 * 4 * 10 * 30 * (8 + 8)
    name = "aten::_scaled_dot_product_flash_attention"
    assert counts(name, q, kv, kv, "0.", "False") == (full, 2 * (640 + 1920 * 2 + 640))
    assert counts(name, q, kv, kv, "0.", "True")[0] == full // 2
    unknown = work(name, q, kv, kv)
    assert unknown is not None
    assert (unknown.flops, unknown.note) == (full, attention.CAUSAL_UNKNOWN)
    # The other layout: batch, length, heads, size.
    q2, kv2 = ((2, 10, 4, 8), BF16), ((2, 30, 4, 8), BF16)
    flash = (q2, kv2, kv2, None, None, "10", "30", "0.", "False")
    assert counts("aten::_flash_attention_forward", *flash)[0] == full
    back = work(f"{name}_backward", q, q, kv, kv, q, None, None, None, "10", "30", "0.", "True")
    assert back is not None
    assert (back.flops, back.model_flops) == (full // 2 * 5 // 2, full)
    # Sequences packed into one: who attends to whom is not in the shapes.
    assert work("aten::_flash_attention_forward", q2, kv2, kv2, ((3,), "int"), ((3,), "int")) is None


def test_elementwise_norms_and_moves() -> None:
    x = ((8, 16), BF16)
    assert counts("aten::add", x, ((16,), BF16), "1") == (128, 2 * (128 + 16 + 128))
    assert counts("aten::mul", x, ((), "double")) == (128, 2 * 256 + 8)
    # A result that was handed in is written, not read.
    assert counts("aten::mul", x, x, x) == (128, 2 * 3 * 128)
    assert counts("aten::gt", x, "0") == (128, 2 * 128 + 128)
    assert counts("aten::add", ((5, 4), BF16), ((5, 4), FP32), "1") == (20, 20 * (2 + 4 + 4))
    assert work("aten::add", ((5, 4), BF16), ((3, 4), BF16)) is None
    assert counts("aten::native_layer_norm", x, None, ((16,), BF16), ((16,), BF16)) == (7 * 128, 2 * (256 + 32))
    assert counts("aten::_softmax", x, "-1", "False") == (5 * 128, 2 * 256)
    assert counts("aten::index_select", ((100, 16), BF16), "0", ((7,), "long int")) == (0, 2 * 2 * 7 * 16 + 56)
    assert counts("aten::embedding", ((100, 16), BF16), ((2, 3), "long int"))[1] == 2 * 2 * 6 * 16 + 48
    assert counts("aten::embedding_dense_backward", ((6, 16), FP32), ((6,), "long int"), "100", "-1", "False") == (
        96,
        4 * (96 + 1_600) + 48,
    )
    assert counts("aten::copy_", ((8, 16), FP32), x) == (0, 128 * 6)
    assert counts("aten::fill_", x, "0") == (0, 256)
    assert counts("aten::sum", ((8, 16), FP32), "[-1]", "False", None, ((8,), FP32)) == (128, 4 * (128 + 8))
    assert counts("aten::mean", ((8, 16), FP32), "[]", "False", None) == (128, 4 * 129)


def test_lists_have_operations_but_no_bytes() -> None:
    call = Call(
        name="aten::_fused_adamw_",
        dims=([[10, 10], [5]], [[10, 10], [5]]),
        types=("TensorList", "TensorList"),
        values=(),
    )
    found = formulas()[call.name][1](call)
    assert found is not None
    assert (found.flops, found.moved_bytes) == (15 * 105, None)
    cat = Call(name="aten::cat", dims=([[2, 3], [4, 3]], []), types=("TensorList", "Scalar"))
    found = formulas()["aten::cat"][1](cat)
    assert found is not None
    assert (found.flops, found.moved_bytes) == (0, None)


def test_elements_repeated_by_a_stride_of_0_are_read_once() -> None:
    call = Call(
        name="aten::add",
        dims=([8, 16], [8, 16]),
        types=(FP32, FP32),
        strides=([16, 1], [0, 1]),
    )
    found = formulas()["aten::add"][1](call)
    assert found is not None
    assert found.moved_bytes == 4 * (128 + 16 + 128)


def test_positions_of_arguments_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")

    def arguments(name: str) -> list[str]:
        space, _, op = name.partition("::")
        packet = getattr(getattr(torch.ops, space), op, None)
        overload = getattr(packet, "default", None) or getattr(packet, "Tensor", None)
        return [argument.name for argument in overload._schema.arguments] if overload is not None else []

    seen = 0
    for layouts in (attention._FORWARD, attention._BACKWARD):
        for name, layout in layouts.items():
            names = arguments(name)
            if names:
                seen += 1
                assert names[layout.query : layout.query + 3] == ["query", "key", "value"], name
                assert layout.causal is None or names[layout.causal] == "is_causal", name
                assert layout.mask_type is None or names[layout.mask_type] == "custom_mask_type", name
                assert layout.packed is None or names[layout.packed] in ("cum_seq_q", "cu_seqlens_q"), name
    for name, places in convolution.FORWARD.items():
        names = arguments(name)
        if names:
            seen += 1
            assert [names[places.stride], names[places.padding], names[1]] == ["stride", "padding", "weight"], name
            assert places.dilation is None or names[places.dilation] == "dilation", name
            assert places.bias is None or names[places.bias] == "bias", name
    for name, (given, grad, weight, mask) in convolution.BACKWARD.items():
        names = arguments(name)
        if names:
            seen += 1
            assert [names[given], names[grad], names[weight], names[mask]] == [
                "input",
                "grad_output",
                "weight",
                "output_mask",
            ], name
    for name, (_, inputs) in elementwise.PER_ELEMENT.items():
        assert len(arguments(f"aten::{name}")) <= inputs, name
        seen += bool(arguments(f"aten::{name}"))
    for name, at in reduction._DIMENSIONS.items():
        packet = getattr(torch.ops.aten, name)
        dims = [getattr(packet, overload)._schema for overload in packet.overloads() if "out" not in overload]
        assert any(len(one.arguments) > at and one.arguments[at].name == "dim" for one in dims), name
    assert seen > 40
