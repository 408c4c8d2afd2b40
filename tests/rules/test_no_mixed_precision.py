import pytest

from slipstream.analysis.kernel_types import is_matmul, precision_of_kernel, precision_of_types
from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000
US = 1_000
SGEMM = "ampere_sgemm_128x64_tn"
TF32 = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(Params)"
BF16 = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8"
LAG = [{"number": 0, "start_ns": 0, "dur_ns": 20 * MS, "inferred": False}]
RUNTIME = [{"event": 1, "name": "cudaLaunchKernel", "thread": 0, "ts_ns": 0, "dur_ns": 10 * US}]
"""A host that is done after 20 of 100 ms: it waits for the device for 80 ms."""


def kernel(name: str, dur_ns: int, event: int = 10, op_event: int | None = None) -> dict[str, object]:
    return {"event": event, "kind": "kernel", "name": name, "ts_ns": 0, "dur_ns": dur_ns, "op_event": op_event}


def test_32_bit_matrix_work_costs_what_the_peaks_say(recording, check):
    # A100: 312 TFLOPS in 16 bits, 87 % of it achievable; 19.5 in 32 bits.
    tables = recording(device_work=[kernel(SGEMM, 50 * MS)], runtime=RUNTIME, steps=LAG)
    (finding,) = check("PRC002", tables)
    assert finding.cost_ns == round(50 * MS * (1 - 19.5 / (312 * 0.87)))
    assert finding.fix_class == "semantic"
    assert "50 %" in finding.title
    assert finding.evidence[0].event == SGEMM


def test_tf32_has_its_own_peak(recording, check):
    tables = recording(device_work=[kernel(TF32, 50 * MS)], runtime=RUNTIME, steps=LAG)
    (finding,) = check("PRC002", tables)
    assert finding.cost_ns == round(50 * MS * (1 - 156 / (312 * 0.87)))


@pytest.mark.parametrize(("share", "fires"), [(10.1, True), (9.9, False)])
def test_a_tenth_of_the_step_decides(recording, check, share, fires):
    tables = recording(device_work=[kernel(SGEMM, round(share * MS))], runtime=RUNTIME, steps=LAG)
    (verdict,) = check("PRC002", tables)
    assert isinstance(verdict, Dismissal) is not fires


def test_a_16_bit_run_is_left_alone(recording, check):
    assert check("PRC002", recording(device_work=[kernel(BF16, 90 * MS)], runtime=RUNTIME, steps=LAG)) == []


def test_elementwise_kernels_are_not_matrix_work(recording, check):
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
    assert check("PRC002", recording(device_work=[kernel(name, 90 * MS)], runtime=RUNTIME, steps=LAG)) == []


@pytest.mark.parametrize(("host_ms", "fires"), [(90, True), (98, False)])
def test_faster_kernels_do_not_help_where_the_host_sets_the_pace(recording, check, host_ms, fires):
    steps = [{"number": 0, "start_ns": 0, "dur_ns": host_ms * MS, "inferred": False}]
    (verdict,) = check("PRC002", recording(device_work=[kernel(SGEMM, 50 * MS)], runtime=RUNTIME, steps=steps))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == 10 * MS


@pytest.mark.parametrize(("waits_us", "fires"), [(5_010, True), (4_990, False)])
def test_a_tenth_of_the_matrix_work_must_be_waited_for(recording, check, waits_us, fires):
    steps = [{"number": 0, "start_ns": 0, "dur_ns": 100 * MS - waits_us * US, "inferred": False}]
    (verdict,) = check("PRC002", recording(device_work=[kernel(SGEMM, 50 * MS)], runtime=RUNTIME, steps=steps))
    assert isinstance(verdict, Dismissal) is not fires


@pytest.mark.parametrize("device", ["NVIDIA A100-PG509-200", None])
def test_an_unknown_device_has_no_peaks(recording, check, device):
    tables = recording(device=device, device_work=[kernel(SGEMM, 50 * MS)], runtime=RUNTIME, steps=LAG)
    with pytest.raises(NotEnoughData, match="hardware table"):
        check("PRC002", tables)


@pytest.mark.parametrize(("known_ms", "fires"), [(21, True), (19, False)])
def test_types_must_be_known_for_half_of_the_work(recording, check, known_ms, fires):
    unknown = kernel("some_gemm_kernel", 20 * MS, event=11)
    tables = recording(device_work=[kernel(SGEMM, known_ms * MS), unknown], runtime=RUNTIME, steps=LAG)
    if fires:
        assert check("PRC002", tables)[0].code == "PRC002"
    else:
        with pytest.raises(NotEnoughData, match="record_shapes"):
            check("PRC002", tables)


def test_input_types_tell_where_the_kernel_does_not(recording, check):
    ops = [
        {"event": 70, "name": "aten::addmm", "thread": 0, "ts_ns": 0, "dur_ns": 1, "input_types": '["float","float"]'}
    ]
    work = [kernel("unfamiliar_kernel", 50 * MS, op_event=70)]
    (finding,) = check("PRC002", recording(device_work=work, ops=ops, runtime=RUNTIME, steps=LAG))
    assert finding.evidence[0].note.startswith("fp32")


CPU_OPS = [
    {"event": 70, "name": "aten::addmm", "thread": 0, "ts_ns": 0, "dur_ns": MS, "input_types": '["float","float"]'}
]
CPU_TREE = [{"event": 70, "thread": 0, "depth": 0, "root": 70, "self_ns": 60 * MS}]


@pytest.mark.parametrize(("units", "fires"), [("amx_bf16", True), ("avx512_bf16", True), ("", False)])
def test_a_cpu_needs_native_units(recording, check, units, fires):
    switches = [{"name": "cpu_16bit_units", "value": units}]
    (verdict,) = check("PRC002", recording(kind="cpu", ops=CPU_OPS, op_tree=CPU_TREE, switches=switches))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == 30 * MS
    else:
        assert "no 16-bit units" in verdict.reason


def test_a_cpu_with_units_of_another_kind_is_not_judged(recording, check):
    switches = [{"name": "cpu_16bit_units", "value": "bf16 svebf16"}]
    with pytest.raises(NotEnoughData, match="svebf16"):
        check("PRC002", recording(kind="cpu", ops=CPU_OPS, op_tree=CPU_TREE, switches=switches))


def test_a_cpu_of_unknown_features_is_not_guessed(recording, check):
    for switches in ({}, {"switches": [{"name": "cpu_16bit_units", "value": None}]}, {"switches": [{"name": "other"}]}):
        with pytest.raises(NotEnoughData, match="16-bit units"):
            check("PRC002", recording(kind="cpu", ops=CPU_OPS, op_tree=CPU_TREE, **switches))


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("volta_sgemm_64x64_nt", "fp32"),
        ("volta_scudnn_128x128_stridedB_splitK_small_nn_v1", "fp32"),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5>(int)", "fp32"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", "fp32"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3", "fp32"),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "tf32"),
        ("cutlass_80_tensorop_s1688gemm_256x128_32x3_nt_align1", "tf32"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "16bit"),
        ("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1", "16bit"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "16bit"),
        ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1", "16bit"),
        ("Cijk_Alik_Bljk_SB_Bias_MT64x64x16_MI32x32x2", "fp32"),
        ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x128", "16bit"),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8", "16bit"),
        ("nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", "16bit"),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3", "8bit"),
        ("ampere_dgemm_64x64_nn", "fp64"),
        ("some_gemm_kernel", None),
    ],
)
def test_names_of_kernels_tell_their_type(name, precision):
    assert precision_of_kernel(name) == precision


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", False),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>", False),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>", False),
        ("void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>", True),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16>", True),
    ],
)
def test_what_counts_as_matrix_work(name, expected):
    assert is_matmul(name) is expected


def test_mixed_or_missing_input_types_tell_nothing():
    assert precision_of_types('["float","c10::Half"]') is None
    assert precision_of_types(None) is None
    assert precision_of_types('["c10::BFloat16","c10::BFloat16","Scalar",""]') == "16bit"
