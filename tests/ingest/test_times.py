"""Times: exact to the nanosecond, and what is done about those that cannot be right."""

from decimal import Decimal

import pytest

EPOCH = 1_719_853_884_000_000


def test_sub_microsecond_kernels_add_up(kineto):
    trace = kineto.read([kineto.kernel(number, 100.7 + number, 0.2) for number in range(1000)])
    assert trace.kernels["dur_ns"].to_list() == [200] * 1000
    assert trace.kernels["dur_ns"].sum() == 200_000


@pytest.mark.parametrize("text", ["1719853884000123.456", '"1719853884000123.456"', "1719853884000123456e-3"])
def test_epoch_microseconds_with_decimals_are_exact(kineto, text):
    events = [kineto.op(ts=1719853884000123.0, dur=1.5), kineto.op(ts="TS", dur="0.001")]
    trace = kineto.read(kineto.text(events).replace('"TS"', text))
    assert trace.ops["ts_ns"].to_list() == [0, 456]
    assert trace.ops["dur_ns"].to_list() == [1500, 1]
    assert trace.source.origin_ns == "1719853884000123000"


def test_relative_times_with_a_base(kineto):
    trace = kineto.read(
        [kineto.op(ts=4458676416431.397), kineto.op(ts=4458676416431.398)], baseTimeNanoseconds=1711964646000000000
    )
    assert trace.ops["ts_ns"].to_list() == [0, 1]
    assert trace.source.origin_ns == str(1711964646000000000 + 4458676416431397)


@pytest.mark.parametrize("whole", [0, 10**6, 2**42, 2**43 - 1, 2**43, 2**44 + 7, EPOCH, 2**52 - 7])
@pytest.mark.parametrize("decimals", ["", ".001", ".499", ".5", ".999"])
def test_every_magnitude_is_exact(kineto, whole, decimals):
    # A neighbour 5 us away, and dur with the same digits: both go through the same reading.
    text = f"{whole}{decimals}"
    events = [kineto.op(ts="TS", dur="TS"), kineto.op(ts=str(whole + 5), dur=1)]
    trace = kineto.read(kineto.text(events).replace('"TS"', text))
    first = Decimal(text) * 1000
    earliest = min(first, Decimal((whole + 5) * 1000))
    assert trace.ops["ts_ns"].to_list() == [int(first - earliest), int((whole + 5) * 1000 - earliest)]
    if first < 30 * 24 * 3600 * 10**9:
        assert trace.ops["dur_ns"][0] == int(first)


def test_times_as_text_mixed_with_numbers_and_large_ids(kineto):
    big = 2**63 - 1
    trace = kineto.read(
        [kineto.op(ts="100.5", dur="2", **{"External id": str(big)}), kineto.op(ts=101, **{"External id": big})]
    )
    assert trace.ops.select("ts_ns", "dur_ns", "external_id").rows() == [(0, 2000, big), (500, 10_000, big)]


def test_display_unit_does_not_change_the_unit(kineto):
    trace = kineto.read([kineto.op(ts=1.0, dur=3.0)], displayTimeUnit="ns")
    assert trace.ops["dur_ns"].to_list() == [3000]


def test_untimed_kernels_stay_countable_and_make_totals_lower_bounds(kineto, issues):
    launches = [kineto.launch(number, EPOCH + 10 * number) for number in range(4)]
    kernels = [kineto.kernel(0 + n, EPOCH + 5 + 10 * n, 3) if n < 2 else kineto.kernel(n, 0, 0) for n in range(1, 4)]
    trace = kineto.read([*launches, *kernels, kineto.kernel(77, 0, 0)])
    # The timed one at its time, the others where they were launched; one without a launch at the beginning.
    assert trace.kernels.select("ts_ns", "dur_ns").rows() == [(15_000, 3000), (20_000, 0), (30_000, 0), (0, 0)]
    assert issues(trace) == {"untimed_device_events": 3}
    assert "75.0%" in trace.integrity.issues[0].text
    assert trace.integrity.grade == "E"
    assert trace.source.origin_ns == str(EPOCH * 1000)


def test_impossible_durations_are_clipped_to_the_successor(kineto, issues):
    good = [kineto.kernel(n, 1000 * n, 900) for n in range(1, 198)]
    bad = [
        kineto.kernel(300, 200_000, -5),
        kineto.kernel(301, 201_000, 18446744073709551615),
        kineto.kernel(302, 202_000, 5_000_000),
        kineto.kernel(303, 203_000, 900),
    ]
    trace = kineto.read([*good, *bad])
    durations = dict(trace.kernels.select("correlation", "dur_ns").rows())
    assert (durations[300], durations[301], durations[302], durations[303]) == (0, 1_000_000, 1_000_000, 900_000)
    assert durations[1] == 900_000
    assert issues(trace) == {"impossible_device_durations": 3}
    assert trace.integrity.grade == "D"


def test_events_show_the_repaired_duration(kineto):
    trace = kineto.read([kineto.kernel(1, 100, 1.8e19), kineto.kernel(2, 200, 5), kineto.op(ts=100, dur=-3)])
    assert trace.events["dur_ns"].to_list() == [100_000, 5000, 0]


def test_few_bad_durations_are_grade_c(kineto):
    events = [kineto.kernel(n, 1000 * n, 900) for n in range(1, 500)] + [kineto.kernel(999, 500_000, -1)]
    assert kineto.read(events).integrity.grade == "C"


def test_overlap_on_one_stream_is_kept(kineto, issues):
    # Programmatic dependent launch, a zero-length kernel inside another.
    trace = kineto.read([kineto.kernel(1, 100, 10), kineto.kernel(2, 108, 10), kineto.kernel(3, 112, 0)])
    assert trace.kernels["dur_ns"].to_list() == [10_000, 10_000, 0]
    assert issues(trace) == {}


def test_sync_rows_are_no_kernels(kineto):
    sync = {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 21, "wait_on_cuda_event_record_corr_id": 4}
    row = kineto.kernel(9, 105, 50, name="Stream Wait Event", **sync, wait_on_cuda_event_id=1) | {"cat": "cuda_sync"}
    trace = kineto.read([kineto.kernel(1, 100, 10), row | {"tid": 1_000_007}, row | {"name": "Context Sync"}])
    assert trace.kernels.height == 1
    assert (
        trace.syncs.select("stream", "wait_on_stream", "wait_on_correlation", "sync_id").rows() == [(7, 21, 4, 1)] * 2
    )


def test_children_that_outlive_their_parents_are_kept_whole(kineto, issues):
    trace = kineto.read(
        [kineto.op("outer", 100, 10), kineto.op("inner", 105, 5.001), kineto.python("a.py(1): f", 106, 10_000)]
    )
    assert trace.ops["dur_ns"].to_list() == [10_000, 5001]
    assert trace.python["dur_ns"].to_list() == [10_000_000]
    assert issues(trace) == {}


def test_host_durations_that_are_impossible(kineto, issues):
    trace = kineto.read([kineto.op(ts=100, dur=-1), kineto.op(ts=150, dur=1.8e19), kineto.op(ts=300, dur=100)])
    assert trace.ops["dur_ns"].to_list() == [0, 250_000, 100_000]
    assert issues(trace) == {"impossible_host_durations": 2}
    assert trace.integrity.grade == "B"


def test_kernels_long_before_the_first_step_are_kept(kineto, issues):
    trace = kineto.read([kineto.kernel(1, 100, 10), kineto.mark("ProfilerStep#3", 5_000_000, 100)])
    assert trace.kernels["ts_ns"].to_list() == [0]
    assert trace.steps.select("number", "start_ns").rows() == [(3, 4_999_900_000)]
    assert issues(trace) == {}


def test_clock_jump_in_the_file_loses_nothing(kineto, issues):
    trace = kineto.read([kineto.op(ts=EPOCH + n, dur=1) for n in (0, 10, 60_000_000, 60_000_010)])
    assert trace.ops["ts_ns"].to_list() == [0, 10_000, 60_000_000_000, 60_000_010_000]
    assert issues(trace) == {}


@pytest.mark.parametrize("ts", [None, "soon", 1.8e19, -1e300])
def test_event_without_a_usable_time_stays_in_events_alone(kineto, issues, ts):
    trace = kineto.read([kineto.op(ts=EPOCH, dur=1), kineto.op("lost", ts=ts)])
    assert trace.ops["name"].to_list() == ["aten::add"]
    assert trace.events.select("name", "ts_ns").rows() == [("aten::add", 0), ("lost", None)]
    assert issues(trace) == {"unusable_times": 1}
