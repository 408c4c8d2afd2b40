import json

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000


def chain(names, *, shape=(64, 64), start=0, dur=20):
    return [
        span(f"aten::{name}", (start + 30 * place) * US, dur * US, input_dims=json.dumps([shape, []]))
        for place, name in enumerate(names)
    ]


def on_cpu(ops, **tables):
    return make_tables(steps=[step(0, 0, 1_000 * US)], ops=ops, **tables)


@pytest.mark.parametrize(("names", "cost_us"), [(["add", "mul", "sub"], 40), (["add", "mul"], None)])
def test_all_but_one_op_of_three_and_more(check, names, cost_us):
    found = check("LCH004", on_cpu(chain(names)))
    assert [finding.cost_ns for finding in found] == ([] if cost_us is None else [cost_us * US])


def test_views_and_what_an_op_calls_do_not_break_a_chain(check):
    ops = chain(["add", "mul", "sub"])
    ops += [span("aten::view", 25 * US, US), span("aten::to", 31 * US, 3 * US), span("aten::copy_", 32 * US, US)]
    (finding,) = check("LCH004", on_cpu(ops))
    assert finding.cost_ns == 40 * US


@pytest.mark.parametrize("between", ["aten::mm", "aten::copy_", "mylib::reduce"])
def test_other_work_breaks_it(check, between):
    assert check("LCH004", on_cpu([*chain(["add", "mul", "sub"]), span(between, 52 * US, US)])) == []


def test_another_shape_breaks_it(check):
    ops = [*chain(["add", "mul"]), *chain(["sub", "div"], shape=(8,), start=60)]
    assert check("LCH004", on_cpu(ops)) == []


def test_on_a_cpu_functions_that_take_time_keep_it(check):
    (finding,) = check("LCH004", on_cpu([*chain(["exp", "mul", "tanh"]), *chain(["add"], start=90, dur=50)]))
    assert finding.cost_ns == (5 + 20 + 5) * US


def test_the_optimizer_and_adding_up_gradients_are_not_chains(check):
    ops = chain(["mul_", "addcmul_", "add_"])
    marks = [span("Optimizer.step#Adam.step", 0, 500 * US)]
    assert check("LCH004", on_cpu(ops, annotations=marks)) == []
    nodes = [
        span("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", place * 30 * US, 25 * US)
        for place in range(3)
    ]
    assert check("LCH004", on_cpu([*nodes, *chain(["add_", "add_", "add_"])])) == []


def test_on_a_device_kernels_count_as_far_as_the_host_waits(check):
    tables = make_tables(
        steps=[step(0, 0, 100 * US)],
        ops=chain(["add", "mul", "sub"]),
        runtime=[span("cudaLaunchKernel", (1 + 30 * place) * US, 2 * US, correlation=place + 1) for place in range(3)],
        kernels=[span("k", (3 + 200 * place) * US, 200 * US, correlation=place + 1) for place in range(3)],
    )
    (finding,) = check("LCH004", tables)
    assert finding.cost_ns == 400 * US


def test_on_a_device_that_waits_for_nobody_it_costs_nothing(check):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[*chain(["add", "mul", "sub"], start=100), span("aten::mm", 0, 10 * US)],
        runtime=[
            span("cudaLaunchKernel", 2 * US, 2 * US, correlation=9),
            *(span("cudaLaunchKernel", (101 + 30 * place) * US, 2 * US, correlation=place + 1) for place in range(3)),
        ],
        kernels=[
            span("gemm", 4 * US, 300 * US, correlation=9),
            *(span("k", (304 + 5 * place) * US, 5 * US, correlation=place + 1) for place in range(3)),
        ],
    )
    (verdict,) = check("LCH004", tables)
    assert isinstance(verdict, Dismissal)


def test_without_shapes_it_cannot_tell(check):
    with pytest.raises(NotEnoughData, match="record_shapes"):
        check("LCH004", on_cpu([{**row, "input_dims": None} for row in chain(["add", "mul", "sub"])]))
