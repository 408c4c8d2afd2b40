"""COM002, COM003, COM006, COM007."""

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
NODE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def exchanging(count, *, elements=1_000, between=False, around=NODE, dur_us=10, **more):
    """Collectives of 10 us every 50 us, each launched 2 us before by a call inside some op."""
    ops, runtime, kernels, told = [], [], [], []
    for place in range(count):
        begin = (10 + place * 50) * US
        ops += [span(around, begin - 5 * US, 20 * US), span("c10d::allreduce_", begin - 4 * US, 10 * US)]
        runtime.append(span("cudaLaunchKernel", begin - 2 * US, US, correlation=2 * place + 1))
        event = 5_000 + place
        kernels.append(span("ncclKernel", begin, dur_us * US, correlation=2 * place + 1, collective=True, event=event))
        told.append(
            {"event": event, "operation": "all_reduce", "dtype": "Float", "in_elements": elements}
            if elements
            else {"event": event, "operation": "all_reduce"}
        )
        if between:
            runtime.append(span("cudaLaunchKernel", begin + 20 * US, US, correlation=2 * place + 2))
            kernels.append(span("gemm", begin + 22 * US, US, correlation=2 * place + 2))
    return make_tables(
        steps=[step(0, 0, (20 + count * 50) * US)], ops=ops, runtime=runtime, kernels=kernels, collectives=told, **more
    )


@pytest.mark.parametrize(
    ("count", "elements", "dur_us", "fires"),
    [
        (20, 249_999, 10, True),
        (19, 249_999, 10, False),
        (20, 250_000, 10, False),  # 1 MB
        (20, None, 99, True),
        (20, None, 100, False),
    ],
)
def test_twenty_collectives_below_a_megabyte(check, count, elements, dur_us, fires):
    assert bool(check("COM002", exchanging(count, elements=elements, dur_us=dur_us))) is fires


def test_one_message_remains_of_twenty(check):
    (finding,) = check("COM002", exchanging(20))
    transfers = 20 * 10 * US * 19 // 20
    assert finding.cost_ns >= transfers  # and idle time while they are launched
    assert finding.cost_ns <= transfers + 20 * 10 * US


def test_exchanges_that_the_next_layer_needs_cannot_be_merged(check):
    assert check("COM002", exchanging(20, between=True, around="forward")) == []
    assert len(check("COM002", exchanging(20, around="forward"))) == 1  # one right after the other
    assert len(check("COM002", exchanging(20, between=True))) == 1  # gradients


def accumulating(passes, *, updates=2, silent=()):
    """Backward passes of 100 us with a bare collective each; an optimizer step after some of them."""
    kernels, runtime, told, phases, begin, number = [], [], [], [], 0, 0
    for _ in range(updates):
        for micro in range(passes):
            phases.append({"step": 0, "phase": "backward", "start_ns": begin, "dur_ns": 100 * US})
            if micro not in silent:
                number += 1
                runtime.append(span("cudaLaunchKernel", begin + 10 * US, US, correlation=number))
                kernels.append(
                    span(
                        "ncclKernel",
                        begin + 20 * US,
                        30 * US,
                        correlation=number,
                        collective=True,
                        event=5_000 + number,
                    )
                )
                told.append({"event": 5_000 + number, "operation": "all_reduce"})
            phases.append({"step": 0, "phase": "forward", "start_ns": begin + 100 * US, "dur_ns": 20 * US})
            begin += 200 * US
        phases.append({"step": 0, "phase": "optimizer", "start_ns": begin - 50 * US, "dur_ns": 40 * US})
    marks = [
        span(
            {"backward": "backward", "forward": "forward", "optimizer": "Optimizer.step#SGD.step"}[row["phase"]],
            row["start_ns"],
            row["dur_ns"],
        )
        for row in phases
    ]
    return make_tables(
        steps=[step(0, 0, begin)],
        ops=[span("aten::mm", 0, US)],
        runtime=runtime,
        kernels=kernels,
        collectives=told,
        annotations=marks,
    )


def test_all_but_the_last_exchange_of_an_update_are_needless(check):
    (finding,) = check("COM003", accumulating(3))
    assert finding.cost_ns == 2 * 2 * 30 * US
    assert "3 backward passes" in finding.title


def test_one_backward_pass_per_update_or_exchanges_in_the_last_only(check):
    assert check("COM003", accumulating(1)) == []
    assert check("COM003", accumulating(3, silent=(0, 1))) == []


def test_without_collectives_phases_do_not_matter(check):
    assert check("COM003", make_tables(steps=[step(0, 0, US)], ops=[span("aten::mm", 0, US)])) == []


def test_without_phases_micro_steps_cannot_be_told_apart(check):
    with pytest.raises(NotEnoughData, match="phases"):
        check(
            "COM003",
            make_tables(
                steps=[step(0, 0, 100 * US)],
                runtime=[span("cudaLaunchKernel", 0, US, correlation=1)],
                kernels=[span("ncclKernel", US, US, correlation=1, collective=True)],
            ),
        )


def replicating(*python, ops=(), busy=False):
    """A kernel, then 200 us of the host, then another kernel."""
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        python=[span("train.py(9): main", 0, 1_000 * US, python_id=1), *python],
        ops=ops,
        runtime=[
            span("cudaLaunchKernel", 0, US, correlation=1),
            span("cudaLaunchKernel", 300 * US, US, correlation=2),
        ],
        kernels=[
            span("k", US, 300 * US if busy else 99 * US, correlation=1),
            span("k", 301 * US, 699 * US, correlation=2),
        ],
    )


REPLICATE = span("torch/nn/parallel/replicate.py(80): replicate", 100 * US, 150 * US, python_id=2)


def test_replicas_keep_the_device_waiting(check):
    (finding,) = check("COM006", replicating(REPLICATE))
    assert finding.cost_ns == 150 * US
    assert finding.location.function == "main"


def test_without_python_rows_two_of_its_functions_tell(check):
    scatter, gather = span("Scatter", 100 * US, 40 * US), span("Gather", 160 * US, 40 * US)
    (finding,) = check("COM006", replicating(ops=[scatter, gather]))
    assert finding.cost_ns == 80 * US
    assert check("COM006", replicating(ops=[gather])) == []


def test_a_busy_device_has_no_use_for_faster_replicas(check):
    (verdict,) = check("COM006", replicating(REPLICATE, busy=True))
    assert isinstance(verdict, Dismissal)


def broadcasting(operation="broadcast", mark="DistributedDataParallel.forward", ops=(), hidden=False):
    kernels = [span("ncclKernel", 20 * US, 30 * US, correlation=1, collective=True, event=5_000)]
    if hidden:
        kernels.append(span("gemm", 10 * US, 100 * US, stream=8))
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=ops,
        annotations=[span(mark, 0, 100 * US)],
        runtime=[span("cudaLaunchKernel", 10 * US, US, correlation=1)],
        kernels=kernels,
        collectives=[{"event": 5_000, "operation": operation}],
    )


def test_buffers_broadcast_by_the_forward_pass(check):
    (finding,) = check("COM007", broadcasting())
    assert finding.cost_ns == 30 * US
    assert "buffers" in finding.title


def test_statistics_of_synchronised_normalisation(check):
    ops = [span("SyncBatchNorm", 5 * US, 20 * US)]
    (finding,) = check("COM007", broadcasting("all_gather", mark="other", ops=ops))
    assert "SyncBatchNorm" in finding.title


def test_other_exchanges_and_hidden_ones(check):
    assert check("COM007", broadcasting("all_reduce")) == []
    assert check("COM007", broadcasting(mark="other")) == []
    (verdict,) = check("COM007", broadcasting(hidden=True))
    assert isinstance(verdict, Dismissal)
