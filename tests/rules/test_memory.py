"""The family memory: churn, limit, growth, copies, recomputation."""

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
GB = 1 << 30


def allocating(steps, call_us=100):
    """A device that waits in every step while the host is inside cudaMalloc."""
    runtime, kernels = [], []
    for number in range(steps):
        begin = number * 1_000 * US
        runtime += [
            span("cudaMalloc", begin + 100 * US, call_us * US),
            span("cudaLaunchKernel", begin + (100 + call_us) * US, 2 * US, correlation=2 * number + 1),
            span("cudaLaunchKernel", begin + US, 2 * US, correlation=2 * number + 2),
        ]
        kernels += [
            span("k", begin + 3 * US, 90 * US, correlation=2 * number + 2),
            span("k", begin + (102 + call_us) * US, 800 * US, correlation=2 * number + 1),
        ]
    return make_tables(
        steps=[step(number, number * 1_000 * US, 1_000 * US) for number in range(steps)],
        python=[span("train.py(9): main", 0, steps * 1_000 * US)],
        runtime=runtime,
        kernels=kernels,
    )


@pytest.mark.parametrize(("steps", "fires"), [(2, True), (1, False)])
def test_allocations_in_two_steps_are_churn(check, steps, fires):
    (verdict,) = check("MEM001", allocating(steps))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == 2 * 100 * US
        assert verdict.location.function == "main"


def test_short_allocations_are_told_but_not_reported(check):
    (verdict,) = check("MEM001", allocating(2, call_us=9))
    assert isinstance(verdict, Dismissal)


def reserved(share, **more):
    rows = [{"ts_ns": 1, "device_type": 1, "device": 0, "size_bytes": 1, "reserved_bytes": round(share * 80 * GB)}]
    return make_tables(
        device="NVIDIA A100-SXM4-80GB", steps=[step(0, 0, US)], memory=rows, kernels=[span("k", 0, US)], **more
    )


@pytest.mark.parametrize(("share", "told"), [(0.901, True), (0.899, False)])
def test_more_than_ninety_per_cent_is_a_risk_and_no_finding(check, share, told):
    found = check("MEM002", reserved(share))
    assert [isinstance(verdict, Dismissal) for verdict in found] == ([True] if told else [])
    assert not told or found[0].reason.startswith("a risk, no cost of time")


def test_the_capacity_of_a_live_capture_is_believed_first(check):
    switches = [{"name": "device_memory_bytes", "value": str(160 * GB)}]
    assert check("MEM002", reserved(0.95, switches=switches)) == []


def test_without_allocations_it_cannot_tell(check):
    tables = make_tables(device="NVIDIA A100-SXM4-80GB", steps=[step(0, 0, US)], kernels=[span("k", 0, US)])
    with pytest.raises(NotEnoughData, match="profile_memory"):
        check("MEM002", tables)


def measured(levels, **more):
    steps = [
        {"number": place, "start_ns": place * US, "dur_ns": US, "phase": "plain", "rss_bytes": level * 1_000_000}
        for place, level in enumerate(levels)
    ]
    return make_tables(steps=[step(0, 0, US)], ops=[span("aten::mm", 0, US)], job_steps=steps, **more)


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        (range(1_000, 1_055), True),  # 5.4 % over the run
        (range(1_000, 1_049), False),  # 4.8 %
        ([1_000, 1_300, 1_450, 1_520, 1_550, 1_560, *range(1_561, 1_580)], False),  # fills up
        ([*range(1_000, 1_100), *[1_000] * 100], False),  # given back
    ],
)
def test_memory_that_keeps_growing_is_a_risk(check, levels, told):
    found = check("MEM005", measured(levels))
    assert [isinstance(verdict, Dismissal) for verdict in found] == ([True] if told else [])


def test_a_few_measured_steps_show_no_trend(check):
    with pytest.raises(NotEnoughData, match="11 steps"):
        check("MEM005", measured(range(100, 111)))


def at_ends(levels):
    return make_tables(
        steps=[step(place, place * US, US) for place in range(len(levels))],
        ops=[span("aten::mm", 0, US)],
        memory=[
            {"ts_ns": place * US + 5, "device_type": 0, "allocated_bytes": level} for place, level in enumerate(levels)
        ],
    )


def test_a_recorded_window_tells_growth_where_every_step_ends_higher(check):
    (verdict,) = check("MEM005", at_ends([100, 110, 120, 130]))
    assert isinstance(verdict, Dismissal)
    assert check("MEM005", at_ends([100, 110, 110, 130])) == []
    with pytest.raises(NotEnoughData):
        check("MEM005", at_ends([100, 110, 120]))


def copying(copy_us, caller="aten::contiguous", **more):
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[
            span(caller, 100 * US, (copy_us + 4) * US),
            span("aten::clone", 101 * US, (copy_us + 2) * US),
            span("aten::copy_", 102 * US, copy_us * US),
        ],
        **more,
    )


@pytest.mark.parametrize(("copy_us", "fires"), [(51, True), (49, False)])
def test_five_per_cent_of_copies(check, copy_us, fires):
    (verdict,) = check("MEM006", copying(copy_us))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == copy_us * US
        assert "aten::contiguous" in verdict.title


@pytest.mark.parametrize("caller", ["aten::_to_copy", "autograd::engine::evaluate_function: SliceBackward0"])
def test_conversions_and_the_backward_pass_are_others_business(check, caller):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[span(caller, 100 * US, 304 * US), span("aten::copy_", 102 * US, 300 * US)],
    )
    assert check("MEM006", tables) == []
    if caller.startswith("autograd"):
        assert check("MEM006", copying(300, caller)) == []


def recomputing(rss_share, *, recorded=True, nodes=1):
    ops = [
        span("aten::linear", 10 * US, 100 * US, sequence=5, fwd_thread=0),
        *(span("AddmmBackward0", (200 + 10 * n) * US, 5 * US, sequence=90 + n, fwd_thread=1) for n in range(nodes)),
        span("CheckpointFunctionBackward", 400 * US, 200 * US, sequence=5, fwd_thread=1),
        span("aten::linear", 410 * US, 100 * US, sequence=9 if recorded else None, fwd_thread=0 if recorded else None),
    ]
    steps = [{"number": 0, "start_ns": 0, "dur_ns": US, "phase": "plain", "rss_bytes": round(rss_share * GB)}]
    switches = [{"name": "host_memory_bytes", "value": str(GB)}]
    return make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops, job_steps=steps, switches=switches)


@pytest.mark.parametrize(("share", "fires"), [(0.499, True), (0.501, False)])
def test_recomputation_counts_while_half_of_the_memory_is_free(check, share, fires):
    (verdict,) = check("MEM007", recomputing(share))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == 100 * US


def test_ops_that_a_node_needs_itself_are_no_recomputation(check):
    assert check("MEM007", recomputing(0.1, recorded=False)) == []


def test_whether_memory_is_free_may_not_be_known(check):
    ops = [
        span("CheckpointFunctionBackward", 400 * US, 200 * US, sequence=5, fwd_thread=1),
        span("aten::linear", 410 * US, 100 * US, sequence=9, fwd_thread=0),
    ]
    with pytest.raises(NotEnoughData, match="slipstream run"):
        check("MEM007", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops))


def test_a_second_derivative_is_no_recomputation(check):
    ops = []
    for place in range(4):
        ops += [
            span("MulBackward0", place * 100 * US, 50 * US, sequence=place, fwd_thread=1),
            span("aten::mul", (place * 100 + 5) * US, 20 * US, sequence=50 + place, fwd_thread=0),
        ]
    assert check("MEM007", make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops)) == []
