import pytest

from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000
HERE = {"file": "train.py", "line": 12, "function": "step", "precision": "statement"}


def copy(event: int, start: int, dur: int, **more: object) -> dict[str, object]:
    row = {"name": "Memcpy HtoD (Pageable -> Device)", "kind": "HtoD", "pageable": True, "size_bytes": 38_000_000}
    return {"event": event, "ts_ns": start * MS, "dur_ns": dur * MS, **row, **more}


def call(event: int, copy_event: int, start: int, dur: int) -> dict[str, object]:
    return {
        "event": event,
        "copy_event": copy_event,
        "kind": "pageable_upload",
        "name": "cudaMemcpyAsync",
        "explicit": False,
        "ts_ns": start * MS,
        "dur_ns": dur * MS,
        **HERE,
    }


def kernel(start: int, dur: int) -> dict[str, object]:
    return {"event": 90, "kind": "kernel", "name": "k", "ts_ns": start * MS, "dur_ns": dur * MS}


def sync(event: int, dur: int, start: int = 60) -> dict[str, object]:
    return {"start_ns": start * MS, "dur_ns": dur * MS, "cause": "sync", "event": event, "inferred": False}


def test_bare_copy_time_and_the_idle_time_behind_it_are_the_cost(recording, check):
    tables = recording(
        copies=[copy(1, 10, 20)],
        device_work=[kernel(0, 15), kernel(70, 30)],
        blocking_calls=[call(5, 1, 9, 22)],
        idle_spans=[sync(5, 1, start=9), sync(5, 7), sync(6, 11)],
    )
    (finding,) = check("INP003", tables)
    # 15 ms bare during the copy and 7 ms idle after it stem from the same wait; 1 ms before it comes on top.
    assert finding.cost_ns == 1 * MS + 15 * MS
    assert finding.location.line == 12
    assert "38.0 MB" in finding.title
    assert "batches" in finding.title


def test_small_tensors_are_called_small(recording, check):
    tables = recording(copies=[copy(1, 10, 20, size_bytes=8)], blocking_calls=[call(5, 1, 9, 22)])
    (finding,) = check("INP003", tables)
    assert "small tensors" in finding.title


@pytest.mark.parametrize(("size", "word"), [(64 * 1024 - 1, "small tensors"), (64 * 1024, "batches")])
def test_border_between_small_and_large(recording, check, size, word):
    (finding,) = check("INP003", recording(copies=[copy(1, 10, 20, size_bytes=size)]))
    assert word in finding.title


def test_copies_beside_computation_are_dismissed(recording, check):
    tables = recording(
        copies=[copy(1, 10, 20)],
        device_work=[kernel(0, 100)],
        blocking_calls=[call(5, 1, 9, 22)],
        idle_spans=[sync(6, 3)],
    )
    (verdict,) = check("INP003", tables)
    assert isinstance(verdict, Dismissal)
    assert "1 pageable upload" in verdict.reason


@pytest.mark.parametrize(("lost_us", "fires"), [(1_010, True), (990, False)])
def test_below_one_per_cent_they_are_told_as_harmless(recording, check, lost_us, fires):
    lost = {**sync(5, 0), "dur_ns": lost_us * 1000}
    (verdict,) = check(
        "INP003",
        recording(
            copies=[copy(1, 10, 20)],
            device_work=[kernel(0, 100)],
            blocking_calls=[call(5, 1, 9, 22)],
            idle_spans=[lost],
        ),
    )
    assert isinstance(verdict, Dismissal) is not fires
    if not fires:
        assert (
            "held the host for 22.0 ms in all, mostly in cudaMemcpyAsync, at train.py:12, and cost the GPU 990 µs"
            in verdict.reason
        )


def test_pinned_copies_are_fine(recording, check):
    assert check("INP003", recording(copies=[copy(1, 10, 20, pageable=False)])) == []


def test_downloads_are_another_matter(recording, check):
    assert check("INP003", recording(copies=[copy(1, 10, 20, kind="DtoH")])) == []


def test_it_cannot_tell_where_the_kind_of_memory_is_not_recorded(recording, check):
    with pytest.raises(NotEnoughData, match="pageable"):
        check("INP003", recording(copies=[copy(1, 10, 20, pageable=None)]))


def test_it_cannot_tell_without_a_device(recording, check):
    with pytest.raises(NotEnoughData, match="there is no device in this recording"):
        check("INP003", recording(kind="cpu"))
