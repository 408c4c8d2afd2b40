import pytest

from slipstream.model import Dismissal
from support.tables import make_tables, span, step

US = 1_000
CLEAR = span("Optimizer.zero_grad#SGD.zero_grad", 100 * US, 100 * US)


def on_cpu(*ops, **tables):
    return make_tables(steps=[step(0, 0, 1_000 * US)], annotations=[CLEAR], ops=ops, **tables)


def test_fills_inside_zero_grad_are_the_cost_once_each(check):
    tables = on_cpu(
        span("aten::zero_", 110 * US, 20 * US),
        span("aten::fill_", 112 * US, 15 * US),
        span("aten::_foreach_zero_", 140 * US, 10 * US),
    )
    (finding,) = check("LCH003", tables)
    assert finding.cost_ns == 30 * US
    assert "2 fills a step" in finding.title


def test_other_fills_are_not_gradients(check):
    assert check("LCH003", on_cpu(span("aten::zero_", 300 * US, 20 * US))) == []


def test_a_modules_zero_grad_is_seen_in_python_rows(check):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        python=[
            span("train.py(7): main", 0, 900 * US),
            span("torch/nn/modules/module.py(2500): zero_grad", 100 * US, 50 * US),
        ],
        ops=[span("aten::zero_", 110 * US, 20 * US)],
    )
    (finding,) = check("LCH003", tables)
    assert finding.location.function == "main"


@pytest.mark.parametrize(("held_us", "cost_us"), [(70, 20), (60, 10), (50, 0)])
def test_on_a_device_no_more_than_the_host_waits(check, held_us, cost_us):
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        annotations=[CLEAR],
        ops=[
            span("aten::zero_", 110 * US, 20 * US),
            span("aten::mm", 0, 20 * US),
            span("aten::item", 300 * US, 90 * US),
        ],
        runtime=[
            span("cudaLaunchKernel", 1 * US, 2 * US, correlation=2),
            span("cudaLaunchKernel", 111 * US, 2 * US, correlation=1),
            span("cudaStreamSynchronize", 305 * US, held_us * US),
        ],
        kernels=[
            span("gemm", 5 * US, 500 * US, correlation=2),
            span("fill", 505 * US, 20 * US, correlation=1),
            span("tail", 525 * US, 475 * US),
        ],
    )
    (verdict,) = check("LCH003", tables)
    assert isinstance(verdict, Dismissal) if not cost_us else verdict.cost_ns == cost_us * US
