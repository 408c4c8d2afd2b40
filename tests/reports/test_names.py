import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.reports.names import short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::addmm", "aten::addmm"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("Optimizer.step#AdamW.step", "Optimizer.step#AdamW.step"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
            "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)",
            "vectorized_elementwise_kernel<CUDAFunctor_add>",
        ),
        ("void at::native::(anonymous namespace)::layer_norm_kernel<float, float>(int)", "layer_norm_kernel<…>"),
        ("at::native::im2col(float const*, int)", "im2col"),
        (
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        ),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_64x64_32x6_tn_align8>(cutlass::Params)",
            "cutlass_80_tensorop_f16_s16816gemm_f16_64x64_32x6_tn_align8",
        ),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, 7, false>(cublas::P<int>)",
            "gemvx::kernel<…>",
        ),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >"
            "(at::native::ReduceOp<float>)",
            "reduce_kernel<ReduceOp>",
        ),
        ("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0"),
        ("x<y", "x<y"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("<built-in function add>", "<built-in function add>"),
    ],
)
def test_what_tells_names_apart_stays(name: str, short: str) -> None:
    assert short_name(name) == short


def test_the_middle_of_a_long_name_is_left_out() -> None:
    shown = short_name("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8", 40)
    assert len(shown) == 40
    assert shown.startswith("cutlass_80_wmma")
    assert shown.endswith("_tn_align8")


@given(st.text(min_size=1), st.integers(8, 80))
def test_any_name_fits_and_none_vanishes(name: str, width: int) -> None:
    shown = short_name(name, width)
    assert len(shown) <= width
    assert bool(shown) == bool(name.strip()) or shown == name
