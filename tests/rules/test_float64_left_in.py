import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000


def on_cpu(*ops):
    return make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops)


def test_half_of_what_is_beyond_the_call_is_the_cost(check):
    tables = on_cpu(span("aten::mm", 0, 105 * US, input_types='["double","double"]'))
    (finding,) = check("PRC004", tables)
    assert finding.cost_ns == 50 * US
    assert "5.0 %" in finding.title


@pytest.mark.parametrize(("us", "fires"), [(6, True), (5, False)])
def test_calls_on_tiny_tensors_do_not_count(check, us, fires):
    assert bool(check("PRC004", on_cpu(span("aten::add", 0, us * US, input_types='["double","Scalar"]')))) is fires


def test_scalars_of_python_are_not_64_bit_tensors(check):
    assert check("PRC004", on_cpu(span("aten::mul", 0, 90 * US, input_types='["float","Scalar"]'))) == []


@pytest.mark.parametrize(("dims", "fires"), [("[[64], []]", False), ("[[64], [64]]", True), ("[[], []]", False)])
def test_a_number_wrapped_as_a_tensor_has_no_shape(check, dims, fires):
    ops = [span("aten::mul", 0, 90 * US, input_types='["float", "double"]', input_dims=dims)]
    assert bool(check("PRC004", on_cpu(*ops))) is fires


def test_without_types_it_cannot_tell(check):
    with pytest.raises(NotEnoughData, match="record_shapes"):
        check("PRC004", on_cpu(span("aten::mm", 0, 90 * US)))


def on_device(name, **more):
    return make_tables(
        steps=[step(0, 0, 500 * US)],
        runtime=[span("cudaLaunchKernel", 0, 5 * US, correlation=1)],
        kernels=[span(name, 5 * US, 995 * US, correlation=1)],
        **more,
    )


@pytest.mark.parametrize(
    ("kernel", "fires"),
    [
        ("volta_dgemm_128x64_nn", True),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<double, ...>>", True),
        ("cutlass_80_tensorop_d884gemm_64x32", False),
        ("void at::native::kernel<4, normal_and_transform<float>::{lambda(float)#1}>(int, double, double)", False),
        ("ampere_sgemm_128x64_nn", False),
    ],
)
def test_kernels_tell_by_their_names(check, kernel, fires):
    assert bool(check("PRC004", on_device(kernel))) is fires


def test_no_more_than_the_host_waits_for(check):
    (finding,) = check("PRC004", on_device("volta_dgemm"))
    assert finding.cost_ns == round(995 * US / 2)


def test_a_host_that_sets_the_pace_gains_nothing(check):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        runtime=[span("cudaLaunchKernel", 0, 5 * US, correlation=1)],
        kernels=[span("volta_dgemm", 5 * US, 95 * US, correlation=1)],
    )
    (verdict,) = check("PRC004", tables)
    assert isinstance(verdict, Dismissal)
