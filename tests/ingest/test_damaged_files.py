"""Files that are cut, misnamed, mixed or hold nothing."""

import gzip
import json

import pytest
import zstandard

from slipstream.ingest import read
from slipstream.model import BadInput, MissingInput, NotATrace


@pytest.fixture
def ops(kineto):
    return [kineto.op(f"aten::op{number}", ts=100.0 + number, dur=1.0) for number in range(5)]


def cut_places(text):
    last = text.rindex('"aten::op4"')
    return {
        "inside a name": last + 5,
        "inside args": text.index('"args"', last) + 9,
        "after a comma": last + len('"aten::op4",'),
        "between elements": text.rindex("},\n", 0, last) + 2,
    }


@pytest.mark.parametrize("place", ["inside a name", "inside args", "after a comma", "between elements"])
def test_cut_text_keeps_what_is_complete(kineto, issues, ops, place):
    text = kineto.text(ops)
    trace = kineto.read(text[: cut_places(text)[place]])
    assert trace.ops["name"].to_list() == [f"aten::op{number}" for number in range(4)]
    assert issues(trace) == {"cut": 1}
    assert trace.integrity.grade == "D"
    assert "4 complete events" in trace.integrity.issues[0].text


def test_cut_before_the_last_bracket_loses_nothing_but_is_told(kineto, ops):
    text = kineto.text(ops)
    trace = kineto.read(text[: text.rindex("]")])
    assert trace.ops.height == 5
    assert trace.integrity.grade == "D"
    assert "lost" not in trace.integrity.issues[0].text


def test_cut_after_the_events_loses_nothing(kineto, ops):
    text = kineto.text(ops)
    trace = kineto.read(text[: text.rindex('"traceName"') + 6])
    assert trace.ops.height == 5
    assert trace.integrity.grade == "D"


def test_gzip_cut_in_the_middle(kineto, issues):
    events = [kineto.op(f"aten::op{number * 7919 % 10007}", ts=100.0 + number) for number in range(3000)]
    packed = gzip.compress(kineto.text(events).encode())
    trace = kineto.read(packed[: len(packed) // 2])
    assert 1000 < trace.ops.height < 2000
    assert trace.ops["name"].to_list() == [event["name"] for event in events[: trace.ops.height]]
    assert issues(trace) == {"cut": 1}
    assert trace.integrity.grade == "D"


def test_gzip_with_a_flipped_byte_keeps_what_lies_before(kineto, issues):
    events = [kineto.op(f"aten::op{number * 7919 % 10007}", ts=100.0 + number) for number in range(3000)]
    packed = bytearray(gzip.compress(kineto.text(events).encode()))
    packed[len(packed) // 2] ^= 0xFF
    trace = kineto.read(bytes(packed))
    assert trace.ops.height > 1000
    assert trace.integrity.grade == "D"


def test_gzip_without_its_trailer(kineto, ops, issues):
    trace = kineto.read(gzip.compress(kineto.text(ops).encode())[:-8])
    assert trace.ops.height == 5
    assert issues(trace) == {"damaged_compression": 1}
    assert trace.integrity.grade == "D"


def test_gzip_of_two_members_is_sound(kineto, ops, issues):
    text = kineto.text(ops).encode()
    trace = kineto.read(gzip.compress(text[:300]) + gzip.compress(text[300:]))
    assert trace.ops.height == 5
    assert issues(trace) == {}


def test_zstd_whole_and_cut(kineto, ops):
    text = kineto.text(ops * 500).encode()
    packed = zstandard.compress(text)
    assert read(kineto.write(packed, "t.json.zst")).ops.height == 2500
    frames = zstandard.compress(text[:1000]) + zstandard.compress(text[1000:])
    assert read(kineto.write(frames, "u.json.zst")).ops.height == 2500
    blocks = zstandard.ZstdCompressor(level=1).compressobj()
    first = blocks.compress(text[: len(text) // 2]) + blocks.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    trace = read(kineto.write(first, "v.json.zst"))
    assert 1000 < trace.ops.height < 1500
    assert trace.integrity.grade == "D"


def test_compression_is_told_by_content_not_by_name(kineto, ops):
    text = kineto.text(ops)
    assert read(kineto.write(text, "plain.json.gz")).ops.height == 5
    assert read(kineto.write(gzip.compress(text.encode()), "packed.json")).ops.height == 5


def test_unfinished_file(kineto, tmp_path):
    kineto.write("{", "trace.json.tmp")
    for path in (tmp_path / "trace.json", tmp_path / "trace.json.tmp", tmp_path):
        with pytest.raises(NotATrace, match="died while writing"):
            read(path)


def test_missing_file(tmp_path):
    with pytest.raises(MissingInput, match="nothing is at"):
        read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (gzip.compress(b""), "no data"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG image"),
        (b"hello", "no JSON"),
        (b"{}", "without traceEvents"),
        (b'{"a": [1, 2]}', "without traceEvents"),
        (b'{"traceEvents": []}', "no event"),
        (b'{"traceEvents": null}', "without traceEvents"),
        (b"[]", "no event"),
        (b"[1, 2, 3]", "no event"),
        (b'{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}]}', "no event"),
        (b'{"schemaVersion": 1, "traceEvents": [ {"ph": "X", "na', "cut before its first complete event"),
        (
            gzip.compress(json.dumps({"traceEvents": [{"ph": "X", "ts": 1}]}).encode())[:12],
            "before its first complete event",
        ),
    ],
)
def test_nothing_in_it_is_one_clear_sentence(kineto, content, says):
    with pytest.raises(NotATrace, match=says):
        kineto.read(content)


def test_one_single_event_is_a_trace(kineto, issues):
    trace = kineto.read(b'{"traceEvents": [{"ph": "X", "name": "a::b", "ts": 5, "dur": 1, "pid": 1, "tid": 1}]}')
    assert trace.ops.select("name", "ts_ns", "dur_ns").rows() == [("a::b", 0, 1000)]
    assert issues(trace) == {}


@pytest.mark.parametrize("how", ["inside an element", "between elements", "one after the other"])
def test_output_of_two_processes_is_refused_naming_both(kineto, ops, how):
    first = kineto.text(ops)
    second = first.replace('"pid": 7', '"pid": 4242')
    at = {"inside an element": first.index("aten::op2"), "between elements": first.index("},\n") + 3}.get(
        how, len(first)
    )
    middle = second.index("aten::op3")
    mixed = first[:at] + second[:middle] + first[at:] + second[middle:]
    with pytest.raises(BadInput, match=r"(7.*4242|4242.*7)"):
        kineto.read(mixed)


def test_several_processes_in_a_sound_file_are_fine(kineto):
    trace = kineto.read([kineto.op(), kineto.op() | {"pid": 8}])
    assert trace.threads["pid"].to_list() == ["7", "8"]


def test_legacy_layout(kineto):
    op = {"name": "aten::add", "ph": "X", "ts": 0.0, "dur": 12.5, "tid": 1, "pid": "CPU functions", "args": {}}
    trace = kineto.read(json.dumps([op, op | {"ts": 20.25, "name": "my range"}]))
    assert trace.ops.select("name", "ts_ns", "dur_ns").rows() == [
        ("aten::add", 0, 12_500),
        ("my range", 20_250, 12_500),
    ]
    assert trace.source.origin_ns is None
    assert trace.source.device_kind == "cpu"


@pytest.mark.parametrize("last", ["{}", "null", ""])
def test_last_element_empty_null_or_a_trailing_comma(kineto, last):
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    trace = kineto.read(f'{{"traceEvents": [{json.dumps(event)}, {last}], "distributedInfo": {{"rank": 2}}}}')
    assert trace.ops.height == 1
    assert trace.source.rank == 2
    assert trace.element_count == (2 if last else 1)
    assert trace.integrity.grade == "A"


def test_elements_without_phase_name_or_time(kineto, issues):
    trace = kineto.read([kineto.op(), {"name": "x"}, {"ph": "X", "ts": 1}, {"ph": "X", "name": "y", "cat": "cpu_op"}])
    assert trace.element_count == 4
    assert trace.events.height == 3
    assert trace.ops.height == 1
    assert issues(trace)["empty_elements"] == 1
    assert issues(trace)["unusable_times"] == 1


def test_order_of_keys_does_not_matter(kineto, ops):
    # The text traceEvents nested in an earlier value, a large value before the events, one key twice.
    text = json.dumps(
        {
            "metadata": {"traceEvents": [{"ph": "X", "name": "wrong"}], "x": "y" * 100_000},
            "distributedInfo": {"rank": 0, "world_size": 4},
            "traceEvents": ops,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}, {"id": 1, "name": "NVIDIA A100"}],
        }
    )
    trace = kineto.read(text[:-1] + ', "distributedInfo": {"rank": 1, "world_size": 4}}')
    assert trace.ops["name"].to_list() == [op["name"] for op in ops]
    assert (trace.source.rank, trace.source.world_size) == (1, 4)
    assert trace.source.device == "NVIDIA A100"


def test_key_twice_in_one_args(kineto):
    text = kineto.text([kineto.op(**{"External id": 1, "B": 2})]).replace('"B"', '"External id"')
    assert kineto.read(text).ops["external_id"].to_list() == [2]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_any_layout_and_objects_in_lists(kineto, monkeypatch, separators, indent):
    # Batches of a few events, with boundaries that look alike inside and outside of an event.
    monkeypatch.setattr("slipstream.ingest.elements.BATCH_BYTES", 500)
    monkeypatch.setattr("slipstream.ingest.decompression.PIECE_BYTES", 300)
    nested = [{"a": 1}, {"b": [{"c": 2}, {"d": 3}]}, {"ph": "X", "cat": "cpu_op", "name": "inner"}]
    events = [kineto.op(f"op::{number}", ts=number, **{"External id": number, "list": nested}) for number in range(50)]
    trace = kineto.read(json.dumps({"traceEvents": events, "after": nested}, separators=separators, indent=indent))
    assert trace.ops.select("event", "name", "external_id").rows() == [(n, f"op::{n}", n) for n in range(50)]
    assert trace.integrity.issues == ()


def test_an_element_too_long_to_be_one_is_given_up(kineto, monkeypatch, issues):
    monkeypatch.setattr("slipstream.ingest.elements.BATCH_BYTES", 500)
    monkeypatch.setattr("slipstream.ingest.elements.STUCK_BYTES", 5000)
    monkeypatch.setattr("slipstream.ingest.decompression.PIECE_BYTES", 300)
    endless = kineto.op("endless", list=[1] * 20_000)
    trace = kineto.read([kineto.op("before"), endless, kineto.op("after"), kineto.op("last")])
    assert trace.ops["name"].to_list() == ["before", "after", "last"]
    assert issues(trace) == {"unreadable_elements": 1}


def test_a_list_of_anything_else_is_no_trace(kineto):
    with pytest.raises(NotATrace):
        kineto.read(json.dumps(list(range(100_000))))
