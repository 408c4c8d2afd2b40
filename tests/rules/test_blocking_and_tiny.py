"""SYN003 and SYN004."""

import pytest

from slipstream.model import Dismissal
from support.tables import make_tables, span, step

US = 1_000


def taking_turns(count, free=0, **more):
    """Launches of 20 us that wait for a kernel of 15 us, then 20 us of nothing; some of them do not wait."""
    runtime, kernels = [], []
    for place in range(count):
        begin = place * 40 * US
        waits = place >= free
        runtime.append(span("cudaLaunchKernel", begin, (20 if waits else 4) * US, correlation=place + 1))
        kernels.append(span("k", begin + 5 * US, 15 * US, correlation=place + 1))
    return make_tables(steps=[step(0, 0, count * 40 * US)], runtime=runtime, kernels=kernels, **more)


@pytest.mark.parametrize(("count", "free", "fires"), [(20, 2, True), (20, 3, False), (19, 0, False)])
def test_nine_of_ten_launches_that_wait(check, count, free, fires):
    assert bool(check("SYN003", taking_turns(count, free))) is fires


def test_the_cost_is_what_the_host_could_have_launched_ahead(check):
    (finding,) = check("SYN003", taking_turns(20))
    assert finding.cost_ns == 20 * 15 * US  # less than the idle time of 25 us for each
    (finding,) = check("SYN003", taking_turns(20, switches=[{"name": "CUDA_LAUNCH_BLOCKING", "value": "1"}]))
    assert "CUDA_LAUNCH_BLOCKING=1" in finding.title


def uploads(count, *, size_bytes=4, busy=False):
    ops, runtime, copies = [], [], []
    for place in range(count):
        begin = (place * 20 + 10) * US
        ops.append(span("aten::to", begin, 10 * US))
        runtime.append(span("cudaMemcpyAsync", begin + 6 * US, 3 * US, correlation=place + 1))
        copies.append(
            span(
                "Memcpy HtoD (Pageable -> Device)",
                begin + 9 * US,
                US,
                correlation=place + 1,
                kind="HtoD",
                pageable=True,
                size_bytes=size_bytes,
                stream=9,
            )
        )
    length = (count * 20 + 20) * US
    runtime.append(span("cudaLaunchKernel", 0, US, correlation=9_999))
    kernels = [span("k", US, length - US if busy else 5 * US, correlation=9_999)]
    return make_tables(
        steps=[step(0, 0, length)],
        python=[span("train.py(9): main", 0, length)],
        ops=ops,
        runtime=runtime,
        copies=copies,
        kernels=kernels,
    )


@pytest.mark.parametrize(("count", "size_bytes", "fires"), [(100, 64, True), (99, 64, False), (100, 65, False)])
def test_a_hundred_uploads_of_at_most_64_bytes(check, count, size_bytes, fires):
    found = check("SYN004", uploads(count, size_bytes=size_bytes))
    assert bool(found) is fires
    if fires:
        assert found[0].location.function == "main"
        assert 0 < found[0].cost_ns <= count * 10 * US


def test_a_busy_device_does_not_mind(check):
    (verdict,) = check("SYN004", uploads(100, busy=True))
    assert isinstance(verdict, Dismissal)
