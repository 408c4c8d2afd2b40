"""CMP003, CMP005, CMP007, CPL003, MEM003."""

import json

import pytest

from slipstream.model import Dismissal, Finding, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
MS = 1_000_000
A100 = "NVIDIA A100-SXM4-80GB"


def images(bias=True, after="aten::batch_norm", channels=64, add_us=100):
    """A convolution with its bias added by an op of its own, and what comes after, on the host alone."""
    dims = [[8, 3, 32, 32], [64, 3, 3, 3], [64] if bias else [], [], [], [], []]
    added = [span("aten::add_", 150 * US, add_us * US)] if bias else []
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[
            span("aten::conv2d", 100 * US, 200 * US, input_dims=json.dumps(dims)),
            *added,
            span(after, 310 * US, 50 * US, input_dims=json.dumps([[8, channels, 30, 30], [channels]])),
        ],
    )


def test_a_bias_in_front_of_a_batch_norm_is_the_op_that_adds_it(check):
    (finding,) = check("CMP003", images())
    assert finding.cost_ns == 100 * US
    assert "without effect" in finding.title


@pytest.mark.parametrize("change", [{"bias": False}, {"after": "aten::group_norm"}, {"channels": 32}])
def test_no_bias_or_no_norm_of_these_channels(check, change):
    assert check("CMP003", images(**change)) == []


def test_a_bias_that_costs_nothing_is_told(check):
    (verdict,) = check("CMP003", images(add_us=0))
    assert isinstance(verdict, Dismissal)
    assert "costs no time" in verdict.reason


def tried(variants, steps, around=0):
    """Calls of convolutions, one a step, each with kernels of so many names."""
    ops, runtime, kernels, number = [], [], [], 0
    for count in range(steps):
        start = 10 * MS * count
        ops.append(span("aten::cudnn_convolution", start, 5 * MS))
        names = [f"conv_algorithm_{name}" for name in range(variants)] + ["nchwToNhwcKernel"] * around
        for place, name in enumerate(names):
            number += 1
            runtime.append(span("cudaLaunchKernel", start + place * 10 * US, 2 * US, correlation=number))
            kernels.append(span(name, start + 100 * US + place * 100 * US, 100 * US, correlation=number))
    steps_ = [step(count, 10 * MS * count, 10 * MS) for count in range(steps)]
    return make_tables(device=A100, steps=steps_, ops=ops, runtime=runtime, kernels=kernels)


@pytest.mark.parametrize(("variants", "fires"), [(5, True), (4, False)])
def test_algorithms_tried_in_several_steps(check, variants, fires):
    verdicts = check("CMP005", tried(variants, 3, around=4))
    assert bool(verdicts) is fires
    if fires:
        assert verdicts[0].cost_ns == 3 * 4 * 100 * US


def test_algorithms_tried_once_are_the_first_use(check):
    (verdict,) = check("CMP005", tried(8, 1))
    assert "first use of these shapes" in verdict.reason


def product(us, calls=4, wait=True, device=A100):
    """Products of 4096 x 4096 in bf16: 137 TFLOP each, 0.44 ms at the peak of 312."""
    dims, types = json.dumps([[4096, 4096], [4096, 4096]]), json.dumps(["c10::BFloat16"] * 2)
    ops, runtime, kernels = [], [], []
    for number in range(calls):
        ops.append(span("aten::mm", number * 10 * US, 8 * US, input_dims=dims, input_types=types))
        runtime.append(span("cudaLaunchKernel", number * 10 * US + US, 2 * US, correlation=number + 1))
        kernels.append(span("ampere_bf16_gemm", 100 * US + number * us * US, us * US, correlation=number + 1))
    end = 100 * US + calls * us * US
    if wait:
        runtime.append(span("cudaDeviceSynchronize", calls * 10 * US, end - calls * 10 * US))
    return make_tables(device=device, steps=[step(0, 0, end)], ops=ops, runtime=runtime, kernels=kernels)


@pytest.mark.parametrize(("us", "fires"), [(3_000, True), (700, False)])
def test_products_far_below_their_roof(check, us, fires):
    verdicts = check("CMP007", product(us))
    assert bool(verdicts) is fires
    if fires:
        assert "aten::mm reaches 1" in verdicts[0].title
        assert 0 < verdicts[0].cost_ns < 4 * us * US


def test_a_device_without_known_peaks_cannot_be_told(check):
    with pytest.raises(NotEnoughData, match="no op has a known roof"):
        check("CMP007", product(3_000, device="Some GPU"))


def job(compiled=True, first_ms=5_000, later=20):
    rows = [
        {"number": 0, "start_ns": 0, "dur_ns": first_ms * MS, "phase": "warmup"},
        *({"number": n + 1, "start_ns": n, "dur_ns": 100 * MS, "phase": "plain"} for n in range(later)),
    ]
    common = {"loader_ns": 0, "optimizer_ns": 0, "optimizer_steps": 1}
    names = ["Torch-Compiled Region: 0/0"] if compiled else ["aten::mm"]
    return make_tables(
        steps=[step(0, 0, 100 * MS)],
        ops=[span(name, 0, 50 * MS) for name in names],
        job_steps=[row | common for row in rows],
    )


def test_compiling_that_took_most_of_the_run(check):
    (finding,) = check("CPL003", job())
    assert isinstance(finding, Finding)
    assert "4.90 s longer" in finding.title
    assert "233 ms or more of each (233 % of a step)" in finding.title


def test_without_compiled_code_or_slow_first_steps_there_is_nothing(check):
    assert check("CPL003", job(compiled=False)) == []
    assert check("CPL003", job(first_ms=250)) == []
    with pytest.raises(NotEnoughData, match="3 steps after the warm-up"):
        check("CPL003", job(later=3))


def occupied(recording, sm_share, busy_ms=90, peak=20 << 30):
    return recording(
        occupancy=[{"name": "thin", "count": 4, "sum_ns": 80 * MS, "sm_share": sm_share}],
        window=[{"busy_ns": busy_ms * MS, "idle_ns": (100 - busy_ms) * MS}],
        memory=[{"event": 1, "ts_ns": 1, "device_type": 1, "device": 0, "size_bytes": 1, "reserved_bytes": peak,
                 "allocated_bytes": peak}],
    )  # fmt: skip


def test_busy_but_not_full_with_memory_left(check, recording):
    (finding,) = check("MEM003", occupied(recording, 0.5))
    assert finding.cost_ns == 40 * MS
    assert "a larger batch would fit" in finding.title


@pytest.mark.parametrize(
    ("change", "word"),
    [({"busy_ms": 50}, "idle comes first"), ({"peak": 60 << 30}, "of the memory of the device is in use")],
)
def test_something_else_comes_first(check, recording, change, word):
    (verdict,) = check("MEM003", occupied(recording, 0.5, **change))
    assert isinstance(verdict, Dismissal)
    assert word in verdict.reason


def test_full_kernels_are_fine(check, recording):
    assert check("MEM003", occupied(recording, 0.95)) == []
