"""INP002, INP004, INP005, INP007."""

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
MS = 1_000_000


def epochs(firsts_ms, *, usual_ms=1, workers=4):
    """Epochs of four batches in a job of one second."""
    waits = [
        {
            "step": 4 * epoch + batch,
            "start_ns": (epoch * 100 + batch * 10) * MS,
            "dur_ns": round((usual_ms if batch else first) * MS),
            "workers": workers,
            "first": not batch,
            "file": "train.py",
            "line": 9,
            "function": "main",
        }
        for epoch, first in enumerate(firsts_ms)
        for batch in range(4)
    ]
    steps = [{"number": 0, "start_ns": 0, "dur_ns": 1_000 * MS, "phase": "plain"}]
    return make_tables(steps=[step(0, 0, 100 * MS)], ops=[span("aten::mm", 0, US)], loader_waits=waits, job_steps=steps)


def test_first_waits_of_later_epochs_count_beyond_the_usual(check):
    (finding,) = check("INP002", epochs([21, 21, 21]))
    assert finding.cost_ns == 4 * MS  # 2 x 20 ms of 1 s, on a window of 100 ms
    assert finding.location.line == 9
    assert "4.0 %" in finding.title


@pytest.mark.parametrize(("later", "fires"), [(10.1, True), (9.9, False)])
def test_workers_that_live_on_are_ready_sooner(check, later, fires):
    (verdict,) = check("INP002", epochs([20, later]))
    assert isinstance(verdict, Dismissal) is not fires


def test_the_training_thread_itself_does_not_restart(check):
    assert check("INP002", epochs([21, 21], workers=0)) == []


def test_one_epoch_does_not_show_the_start_of_another(check):
    with pytest.raises(NotEnoughData, match="first epoch"):
        check("INP002", epochs([21]))


def sending(*, types='["float", "unsigned char", "Scalar"]', copy_bytes=4_000, kernel_until=110):
    """1,000 elements converted from 10 to 60 us, then an upload of 100 us from 100 us on."""
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        python=[span("train.py(9): main", 0, 1_000 * US)],
        ops=[span("aten::copy_", 10 * US, 50 * US, input_dims="[[1000], [1000], []]", input_types=types)],
        runtime=[
            span("cudaLaunchKernel", 0, US, correlation=1),
            span("cudaMemcpyAsync", 70 * US, 5 * US, correlation=2),
            span("cudaLaunchKernel", 80 * US, 5 * US, correlation=3),
        ],
        kernels=[
            span("k", US, (kernel_until - 1) * US, correlation=1),
            span("k", 200 * US, 800 * US, correlation=3),
        ],
        copies=[
            span(
                "Memcpy HtoD (Pageable -> Device)",
                100 * US,
                100 * US,
                correlation=2,
                kind="HtoD",
                pageable=True,
                size_bytes=copy_bytes,
                stream=8,
            )
        ],
    )


def test_the_bare_part_of_the_upload_that_bytes_would_save(check):
    (finding,) = check("INP004", sending())
    assert finding.cost_ns == 90 * US * 3 // 4
    assert finding.location.function == "main"
    assert "1.00 kB to 4.00 kB" in finding.title


def test_idle_time_during_the_conversion_counts_as_well(check):
    (finding,) = check("INP004", sending(kernel_until=40))
    assert finding.cost_ns == 100 * US * 3 // 4 + 20 * US


def test_a_hidden_upload_costs_nothing(check):
    (verdict,) = check("INP004", sending(kernel_until=200))
    assert isinstance(verdict, Dismissal)


@pytest.mark.parametrize(
    "more",
    [
        {"copy_bytes": 4_004},  # something else was sent
        {"types": '["float", "float", "Scalar"]'},
        {"types": '["c10::Half", "float", "Scalar"]'},
    ],
)
def test_only_what_is_widened_and_sent(check, more):
    assert check("INP004", sending(**more)) == []


def test_a_type_of_twice_the_size_is_wide(check):
    (finding,) = check("INP004", sending(types='["float", "short int", "Scalar"]'))
    assert finding.cost_ns == 90 * US // 2


def test_without_types_it_cannot_tell(check):
    with pytest.raises(NotEnoughData, match="record_shapes"):
        check("INP004", sending(types=None))


def preparing(**more):
    return make_tables(
        ops=[span("aten::mm", 900 * US, 100 * US)],
        python=[
            span("train.py(9): main", 0, 900 * US, python_id=1),
            span("PIL/Image.py(2100): resize", 100 * US, 300 * US, python_id=2),
        ],
        **more,
    )


def test_libraries_that_prepare_data_on_the_main_thread(check):
    (finding,) = check("INP005", preparing(steps=[step(0, 0, 1_000 * US)]))
    assert finding.cost_ns == 300 * US
    assert finding.location.function == "main"
    assert "resize" in finding.title


def test_in_the_loader_it_is_the_loaders(check):
    marks = [span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 50 * US, 400 * US)]
    assert check("INP005", preparing(steps=[step(0, 0, 1_000 * US)], annotations=marks)) == []


def test_without_steps_it_may_be_the_set_up(check):
    (verdict,) = check("INP005", preparing())
    assert isinstance(verdict, Dismissal)


def sharing(workers, threads, cores, *, device=False):
    values = {"torch_threads": threads, "allowed_cores": cores}
    kernels = {"kernels": [span("k", 0, US)]} if device else {"ops": [span("aten::mm", 0, US)]}
    return make_tables(
        steps=[step(0, 0, US)],
        switches=[{"name": name, "value": str(value)} for name, value in values.items()],
        loader_waits=[{"step": 0, "start_ns": 0, "dur_ns": 1, "workers": workers, "first": True}],
        **kernels,
    )


@pytest.mark.parametrize(
    ("workers", "threads", "device", "told"),
    [(4, 5, False, True), (4, 4, False, False), (8, 4, True, True), (7, 4, True, False), (0, 9, False, False)],
)
def test_workers_and_threads_beyond_eight_cores_are_told(check, workers, threads, device, told):
    found = check("INP007", sharing(workers, threads, 8, device=device))
    assert [isinstance(verdict, Dismissal) for verdict in found] == ([True] if told else [])
