import pytest

from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.scope import scope_of

MS = 1_000_000
US = 1_000


def runtime(name: str, start: int, dur_us: int) -> dict[str, object]:
    return {"event": start, "name": name, "thread": 0, "ts_ns": start * MS, "dur_ns": dur_us * US}


STEPS = [{"number": 0, "start_ns": 0, "dur_ns": 100 * MS, "inferred": False}]


def waits(tables):
    return host_waits_ns(tables, scope_of(tables))


def test_waiting_calls_count_beyond_their_usual_time_and_the_lag_at_the_end(recording):
    steps = [{**STEPS[0], "dur_ns": 90 * MS}]
    tables = recording(runtime=[runtime("cudaStreamSynchronize", 10, 5_050)], steps=steps)
    assert waits(tables) == 5 * MS + 10 * MS


@pytest.mark.parametrize(("dur_us", "expected"), [(50, 0), (51, US)])
def test_a_launch_of_fifty_microseconds_is_unhindered(recording, dur_us, expected):
    assert waits(recording(runtime=[runtime("cudaLaunchKernel", 10, dur_us)], steps=STEPS)) == expected


def test_a_call_on_an_idle_device_waits_for_something_else(recording):
    idle = [{"start_ns": 11 * MS, "dur_ns": 2 * MS, "cause": "sync", "inferred": False}]
    tables = recording(runtime=[runtime("cudaStreamSynchronize", 10, 5_050)], steps=STEPS, idle_spans=idle)
    assert waits(tables) == 3 * MS


def test_allocations_are_no_waiting(recording):
    assert waits(recording(runtime=[runtime("cudaMalloc", 10, 5_000)], steps=STEPS)) == 0


def test_without_runtime_rows_it_is_not_known(recording):
    assert waits(recording(steps=STEPS)) is None


def test_without_step_marks_the_last_call_is_where_the_host_was_done(recording):
    assert waits(recording(runtime=[runtime("cudaLaunchKernel", 60, 10)])) == 100 * MS - 60 * MS - 10 * US
