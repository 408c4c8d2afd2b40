"""Text that is no sound JSON: the right value is read, what was repaired is counted."""

import pytest


def names(trace, table="events"):
    return trace.table(table)["name"].cast(str).to_list()


@pytest.mark.parametrize(
    "path",
    [
        r"torch\cuda\__init__.py(12): is_available",  # illegal escapes
        r"torch\nn\tensor.py(3): f",  # legal JSON, silently a wrong path
        r"src\u12\train.py(4): main",  # half a unicode escape
        r"D:\new\cuda\bench.py(1): g",  # both kinds in one
        r"\\server\share\x.py(2): h",
    ],
)
def test_windows_path_with_single_backslashes_is_read_whole(kineto, issues, path):
    text = kineto.text([kineto.op(), kineto.python("NAME"), kineto.op(ts=300.0)]).replace("NAME", path)
    trace = kineto.read(text)
    assert names(trace) == ["aten::add", path, "aten::add"]
    assert issues(trace) == {"illegal_escapes": 1}
    assert trace.integrity.grade == "B"


def test_escaped_windows_path_is_no_issue(kineto, issues):
    trace = kineto.read([kineto.python("torch\\nn\\tensor.py(3): f")])
    assert names(trace) == ["torch\\nn\\tensor.py(3): f"]
    assert issues(trace) == {}


@pytest.mark.parametrize(
    "name",
    [
        '{"a": 1, "b": "two"}(3): forward',
        '<eval_with_key>."quoted"',
        'a "ts" inside',
        'ends with a "quote"',
    ],
)
def test_raw_quotes_rename_one_event_and_lose_none(kineto, issues, name):
    text = kineto.text([kineto.op(), kineto.python("NAME", ts=200.0, dur=7.5), kineto.op(ts=300.0)]).replace(
        "NAME", name
    )
    trace = kineto.read(text)
    assert trace.events.height == 3
    assert names(trace)[1] == name
    assert trace.python["dur_ns"].to_list() == [7500]
    assert issues(trace) == {"raw_quotes": 1}


@pytest.mark.parametrize("code", [0x00, 0x01, 0x09, 0x0A, 0x1F])
def test_control_bytes_stay_in_the_name(kineto, issues, code):
    text = kineto.text([kineto.op(), kineto.op("aXb")]).replace("aXb", f"a{chr(code)}b")
    trace = kineto.read(text)
    assert names(trace) == ["aten::add", f"a{chr(code)}b"]
    assert issues(trace) == {"control_characters": 1}


def test_delete_byte_is_sound(kineto, issues):
    trace = kineto.read(kineto.text([kineto.op("aXb")]).replace("aXb", "a\x7fb"))
    assert names(trace) == ["a\x7fb"]
    assert issues(trace) == {}


@pytest.mark.parametrize("wrong", [b"\xc7", b"\x80", b"\xff", b"\xed\xa0\x80"])
def test_bytes_that_are_no_utf8(kineto, issues, wrong):
    text = kineto.text([kineto.op("aXb"), kineto.op(**{"Call stack": "cXd", "External id": 4})])
    trace = kineto.read(text.encode().replace(b"aXb", b"a" + wrong + b"b").replace(b"cXd", b"c" + wrong + b"d"))
    assert names(trace)[0].startswith("a\ufffd")
    assert names(trace)[0].endswith("b")
    assert trace.ops["call_stack"].cast(str)[1].startswith("c\ufffd")
    assert trace.ops["external_id"].to_list() == [None, 4]
    assert issues(trace) == {"invalid_utf8": 2}


def test_lone_surrogate_escape(kineto, issues):
    trace = kineto.read(kineto.text([kineto.op("aXb")]).replace("aXb", r"a\ud800b"))
    assert names(trace) == ["a\ufffdb"]
    assert issues(trace) == {"invalid_utf8": 1}


@pytest.mark.parametrize("number", ["inf", "-inf", "Infinity", "nan", "NaN", "-nan(ind)"])
def test_numbers_that_are_not_finite_are_missing(kineto, issues, number):
    copy = kineto.kernel(
        1, 100.0, 0, name="Memcpy HtoD (Pinned -> Device)", bytes=8, **{"memory bandwidth (GB/s)": "N"}
    )
    text = kineto.text([kineto.op(), copy | {"cat": "gpu_memcpy"}]).replace('"N"', number)
    trace = kineto.read(text)
    assert trace.copies.select("size_bytes", "dur_ns", "kind").rows() == [(8, 0, "HtoD")]
    assert issues(trace) == {"not_finite_numbers": 1}


def test_not_finite_words_inside_a_name_are_a_name(kineto):
    text = kineto.text([kineto.op("x: nan, y: [inf]"), kineto.op(bytes="N")]).replace('"N"', "inf")
    assert names(kineto.read(text)) == ["x: nan, y: [inf]", "aten::add"]


@pytest.mark.parametrize("log", ['"a "quoted" word"', '"two\nlines"', r'"C:\cuda"'])
def test_log_lines_after_the_events_do_no_harm(kineto, issues, log):
    text = kineto.text([kineto.op()], distributedInfo={"rank": 3, "world_size": 8})
    trace = kineto.read(text.replace('"traceName"', f'"INFO": [{log}],\n  "traceName"'))
    assert trace.events.height == 1
    assert (trace.source.rank, trace.source.world_size) == (3, 8)
    assert issues(trace) == {"damaged_description": 1}


def test_key_without_its_opening_quote(kineto, issues):
    text = kineto.text([kineto.op(), kineto.op("aten::mul", ts=200.0)])
    at = text.rindex('"tid"')
    trace = kineto.read(text[:at] + text[at + 1 :])
    assert trace.ops.select("name", "ts_ns").rows() == [("aten::add", 0), ("aten::mul", 100_000)]
    assert trace.threads["tid"].to_list() == ["7"]
    assert issues(trace) == {"broken_keys": 1}


def test_value_without_quotes(kineto, issues):
    text = kineto.text([kineto.op(**{"Call stack": "STACK", "External id": 9})])
    trace = kineto.read(text.replace('"STACK"', "a.py(1): f;b.py(2): g"))
    assert trace.ops.select("call_stack", "external_id").rows() == [("a.py(1): f;b.py(2): g", 9)]
    assert issues(trace) == {"missing_quotes": 1}


def test_brackets_and_the_word_traceevents_inside_names(kineto, issues):
    tricky = ["a[0]]}", 'say "traceEvents": [{', "},\n  {", "}, {", "],"]
    text = kineto.text([kineto.op(name) for name in tricky], note='x "traceEvents": [1')
    trace = kineto.read(text.replace('"t.json"', r'"\"traceEvents\": [{}]"'))
    assert names(trace, "ops") == tricky
    assert issues(trace) == {}


def test_value_of_an_impossible_type_costs_that_value_alone(kineto, issues):
    trace = kineto.read([kineto.op() | {"name": {"a": 1}}, kineto.op(**{"External id": [1], "Sequence number": 4})])
    assert trace.ops["name"].to_list() == [None, "aten::add"]
    assert trace.ops.select("external_id", "sequence").rows()[1] == (None, 4)
    assert issues(trace) == {"odd_values": 1}


def test_an_element_beyond_repair_is_dropped_and_told(kineto, issues):
    text = kineto.text([kineto.op(), {"BAD": 1}, kineto.op("aten::mul", ts=300.0)])
    trace = kineto.read(text.replace('"BAD": 1', '"ph": "X", "ts" 5'))
    assert names(trace) == ["aten::add", "aten::mul"]
    assert trace.events["event"].to_list() == [0, 2]
    assert issues(trace) == {"unreadable_elements": 1}
    assert trace.integrity.grade == "E"  # one of three elements
