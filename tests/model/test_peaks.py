import pytest

from slipstream.model.peaks import peaks_of


@pytest.mark.parametrize(
    "device",
    ["NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB", "nvidia a100 sxm4 80gb", "NVIDIA(R) A100-SXM4-80GB"],
)
def test_spelling_and_vendor_do_not_matter(device):
    peaks = peaks_of(device)
    assert peaks is not None
    assert (peaks.bf16_tflops, peaks.fp32_tflops, peaks.hbm_gbps) == (312, 19.5, 2039)


def test_a_whole_card_in_a_virtual_machine_is_that_card():
    peaks = peaks_of("AMD Instinct MI300X VF")
    assert peaks is not None
    assert peaks.bf16_tflops == 1307


def test_missing_figures_are_none():
    peaks = peaks_of("Tesla V100-SXM2-32GB")
    assert peaks is not None
    assert (peaks.bf16_tflops, peaks.tf32_tflops, peaks.fp16_tflops) == (None, None, 125)


@pytest.mark.parametrize(
    "device",
    [
        None,
        "",
        "NVIDIA",
        "NVIDIA A100",
        "NVIDIA A100-PG509-200",
        "NVIDIA A100-SXM4-80GB MIG 3g.40gb",
        "NVIDIA H100",
        "TPU v4",
    ],
)
def test_anything_else_is_unknown(device):
    assert peaks_of(device) is None
