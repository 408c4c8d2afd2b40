"""Tables of trace files in the user's cache folder: used, noticed when stale, bounded."""

import json
import os

import pytest

from slipstream.ingest import keep_diagnosis, kept_diagnosis, locate, open_kept, user_cache
from slipstream.rules.diagnosis import diagnose


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(user_cache, "WORTHWHILE_BYTES", 10)

    def write(name="a", op="aten::add"):
        place = tmp_path / f"{name}.json"
        event = {"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": 1, "dur": 2}
        place.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
        return locate(place)[0]

    return write


def test_the_second_time_nothing_is_read(file, monkeypatch):
    recording = file()
    first = open_kept(recording)
    monkeypatch.setattr(user_cache, "read", lambda _: pytest.fail("read again"))
    second = open_kept(recording)
    assert second.ops.equals(first.ops)
    assert second.source == first.source


def test_a_changed_file_is_read_again(file):
    open_kept(file())
    changed = file(op="aten::mul_longer")
    assert open_kept(changed).ops["name"].to_list() == ["aten::mul_longer"]


def test_a_diagnosis_is_kept_for_the_very_file(file):
    recording = file()
    assert kept_diagnosis(recording) is None
    known = diagnose(open_kept(recording)).diagnosis
    keep_diagnosis(recording, known)
    assert kept_diagnosis(recording) == known
    file(op="aten::mul_longer")
    assert kept_diagnosis(recording) is None


def test_small_files_and_those_elsewhere_are_not_kept(file, monkeypatch, tmp_path):
    monkeypatch.setattr(user_cache, "WORTHWHILE_BYTES", 1_000_000)
    assert open_kept(file()).ops.height == 1
    assert not (tmp_path / "cache").exists()


def test_the_folder_stays_within_its_bound_and_loses_what_was_used_least(file, monkeypatch, tmp_path):
    one, two, three = file("a"), file("b"), file("c")
    open_kept(one)
    size = sum(part.stat().st_size for part in (tmp_path / "cache").rglob("*") if part.is_file())
    open_kept(two)
    for age, recording in ((100, one), (200, two)):
        os.utime(user_cache.place_of(recording), (age, age))
    open_kept(one)  # used again: now two is the one to go
    monkeypatch.setattr(user_cache, "MOST_BYTES", int(2.5 * size))
    open_kept(three)
    there = [user_cache.place_of(recording).exists() for recording in (one, two, three)]
    assert there == [True, False, True]
