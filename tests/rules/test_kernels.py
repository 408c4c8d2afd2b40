"""PRC001, PRC003, PRC005, CMP002, CMP004, CMP006."""

import json

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
A100 = "NVIDIA A100-SXM4-80GB"


def running(*kernels, device=A100, wait_us=1_000, **more):
    """Kernels one after the other, launched at once by ops of their own; the host waits for the end."""
    runtime, rows, ops, begin = [], [], [], 100 * US
    for number, (name, dur_us, op) in enumerate(kernels):
        runtime.append(span("cudaLaunchKernel", (2 * number + 1) * US, US // 2, correlation=number + 1))
        ops.append(span("aten::x", 2 * number * US, 2 * US - 1) | op)
        rows.append(span(name, begin, dur_us * US, correlation=number + 1))
        begin += dur_us * US
    runtime.append(span("cudaDeviceSynchronize", 2 * len(kernels) * US, (wait_us + 50) * US))
    length = max(1_000 * US, begin)
    return make_tables(device=device, steps=[step(0, 0, length)], ops=ops, runtime=runtime, kernels=rows, **more)


@pytest.mark.parametrize(("us", "fires"), [(101, True), (99, False)])
def test_plain_32_bit_products_from_ten_per_cent(check, us, fires):
    (verdict,) = check("PRC001", running(("ampere_sgemm_128x64_nn", us, {}), ("other", 500, {})))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == round(101 * US * (1 - 19.5 / 156))


def test_tf32_products_and_devices_without_it_are_left_alone(check):
    assert check("PRC001", running(("ampere_tf32_s1688gemm_128x64", 500, {}))) == []
    (verdict,) = check("PRC001", running(("volta_sgemm_128x64", 500, {}), device="Tesla V100-SXM2-32GB"))
    assert "has no TF32" in verdict.reason
    with pytest.raises(NotEnoughData, match="hardware table"):
        check("PRC001", running(("ampere_sgemm_128x64_nn", 500, {}), device="Some GPU"))


def product(m, k, n, type_="c10::BFloat16"):
    return {
        "name": "aten::mm",
        "input_dims": json.dumps([[m, k], [k, n]]),
        "input_types": json.dumps([type_, type_]),
    }


def test_misaligned_products_count_beyond_the_rate_of_aligned_ones(check):
    tables = running(("align1", 400, product(1000, 1000, 1001)), ("align8", 100, product(1000, 1000, 1000)))
    (finding,) = check("PRC003", tables)
    assert finding.cost_ns == pytest.approx(400 * US - 100.1 * US, abs=10)
    assert "1000 x 1000 x 1001" in finding.title


@pytest.mark.parametrize("size", ["m", "k", "n"])
def test_every_size_counts_and_eights_are_fine(check, size):
    def sized(value):
        return product(**{"m": 800, "k": 800, "n": 800, size: value})

    aligned = ("b", 100, product(800, 800, 800))
    assert len(check("PRC003", running(("a", 400, sized(796)), aligned))) == 1
    assert check("PRC003", running(("a", 400, sized(792)), aligned)) == []


def test_without_similar_aligned_products_there_is_nothing_to_compare(check):
    (verdict,) = check("PRC003", running(("a", 400, product(999, 999, 999)), ("b", 5, product(64, 64, 64))))
    assert isinstance(verdict, Dismissal)
    assert check("PRC003", running(("a", 400, product(999, 999, 999, "float")))) == []


def cast(into, of, us, start=0):
    types = json.dumps([into, of, "Scalar"])
    return span("aten::copy_", start * US, us * US, input_types=types)


@pytest.mark.parametrize(("us", "fires"), [(51, True), (49, False)])
def test_five_per_cent_of_conversions(check, us, fires):
    tables = make_tables(steps=[step(0, 0, 1_000 * US)], ops=[cast("float", "c10::BFloat16", us)])
    (verdict,) = check("PRC005", tables)
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == us * US


def test_copies_of_one_type_and_of_integers_are_no_casts(check):
    ops = [cast("float", "float", 200), cast("float", "long int", 200, start=300)]
    assert check("PRC005", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops)) == []


def test_casts_need_types(check):
    ops = [span("aten::copy_", 0, 100 * US)]
    with pytest.raises(NotEnoughData, match="record_shapes"):
        check("PRC005", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops))


@pytest.mark.parametrize("name", ["void cudnn::ops::nchwToNhwcKernel<float>", "batched_transpose_64x64_half"])
def test_layout_conversions_cost_their_time(check, name):
    (finding,) = check("CMP002", running((name, 100, {}), ("gemm", 500, {})))
    assert finding.cost_ns == 100 * US


def test_no_more_than_the_host_waits(check):
    (finding,) = check("CMP002", running(("nhwcToNchwKernel", 900, {}), wait_us=78))
    assert finding.cost_ns == 30 * US
    assert check("CMP002", running(("transpose_readWrite", 900, {}))) == []


def elementwise(name="aten::add", elements=2_500_000):
    dims = json.dumps([[elements], [elements], []])
    return {"name": name, "input_dims": dims, "input_types": '["float", "float", "Scalar"]'}


GENERAL = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl>"
FLOOR = round(30_000_000 / (2039 * 0.8))


def test_general_kernels_count_beyond_the_rate_of_the_memory(check):
    (finding,) = check("CMP004", running((GENERAL, 100, elementwise())))
    assert finding.cost_ns == 100 * US - FLOOR


@pytest.mark.parametrize(
    ("kernel", "op"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::f>", elementwise()),
        ("void at::native::unrolled_elementwise_kernel<at::native::f>", elementwise()),
        (GENERAL, elementwise("aten::copy_")),
        (GENERAL, elementwise(elements=80_000)),
    ],
)
def test_vectorised_small_and_copying_ones_are_left_alone(check, kernel, op):
    assert check("CMP004", running((kernel, 100, op))) == []


def test_a_megabyte_is_large(check):
    assert len(check("CMP004", running((GENERAL, 100, elementwise(elements=84_000))))) == 1


def forward(nodes, start=0, first=10):
    """Ops that make nodes; the number that each carries is that of the node it makes."""
    rows = [
        span("aten::mul", (start + place) * US, US // 2, sequence=first + place, fwd_thread=0) for place in range(nodes)
    ]
    return [*rows, span("aten::detach", (start + nodes) * US, US // 2, sequence=first + nodes, fwd_thread=0)]


def backward(nodes, start, first=10):
    return [
        span("MulBackward0", (start + place) * US, US // 2, sequence=first + place, fwd_thread=1)
        for place in range(nodes)
    ]


@pytest.mark.parametrize(("nodes", "fires"), [(30, True), (29, False)])
def test_thirty_nodes_that_nobody_visits(check, nodes, fires):
    found = check("CMP006", make_tables(steps=[step(0, 0, 1_000 * US)], ops=forward(nodes)))
    assert bool(found) is fires
    if fires:
        assert found[0].cost_ns == 30 * US


def test_training_visits_its_nodes(check):
    ops = [*forward(60), *backward(60, 100)]
    assert check("CMP006", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops)) == []


def test_evaluation_within_training_is_found(check):
    ops = [*forward(40), *forward(40, start=100, first=50), *backward(40, 200)]
    (finding,) = check("CMP006", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops))
    assert finding.cost_ns == 40 * US


def test_a_recording_cut_before_its_backward_pass_is_not_judged(check):
    ops = [*forward(40), *backward(40, 100), *forward(40, start=200, first=50)]
    assert check("CMP006", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops)) == []


def test_without_autograd_nothing_is_made(check):
    ops = [span("aten::mul", place * US, US // 2) for place in range(60)]
    assert check("CMP006", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops)) == []
