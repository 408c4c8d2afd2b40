"""``slipstream view``: what is cut, the file that is written, the server, and clear refusals."""

import gzip
import json
import threading
import urllib.error
import urllib.request

import pytest

from slipstream.cli.serving import NAME, PAGE, serve
from slipstream.cli.viewing import view, wanted
from slipstream.model import BadInput


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "trace.json"

    def write(step_us=(100, 300, 200), marks=True):
        events = []
        at = 1000
        for number, length in enumerate(step_us):
            base = {"ph": "X", "pid": 1, "tid": 1}
            if marks:
                events.append(
                    {**base, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at, "dur": length}
                )
            events.append({**base, "cat": "cpu_op", "name": f"aten::op{number}", "ts": at + 1, "dur": length - 2})
            at += length
        file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return file

    return write


def names(shown):
    document = json.loads(shown.document)
    return {e["name"] for e in document["traceEvents"] if e["ph"] == "X" and e["cat"] == "cpu_op"}


def test_without_a_wish_a_step_of_median_length_is_shown(trace):
    shown = view(str(trace()), wanted(None, None))
    assert names(shown) == {"aten::op2"}
    assert shown.what == "step 2, of median length among 3"


def test_steps_are_shown_by_number(trace):
    assert names(view(str(trace()), wanted("0-1", None))) == {"aten::op0", "aten::op1"}
    with pytest.raises(BadInput, match="no step 7: it has 0 to 2"):
        view(str(trace()), wanted("7", None))


def test_a_recording_without_steps_is_shown_whole(trace):
    shown = view(str(trace(marks=False)), wanted(None, None))
    assert names(shown) == {"aten::op0", "aten::op1", "aten::op2"}


def test_a_finding_that_is_not_there_is_refused_with_those_that_are(trace):
    with pytest.raises(BadInput, match="no finding SYN001-1"):
        view(str(trace()), wanted(None, "SYN001-1"))


@pytest.mark.parametrize(("steps", "finding"), [("a", None), ("5-3", None), (None, "SYN1"), ("1", "SYN001-1")])
def test_options_that_cannot_be_read_are_refused(steps, finding):
    with pytest.raises(BadInput):
        wanted(steps, finding)


def test_a_written_slice_is_a_recording_itself(trace, tmp_path, slipstream):
    target = tmp_path / "slice.json.gz"
    done = slipstream("view", str(trace()), "--steps", "1", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert json.loads(gzip.decompress(target.read_bytes()))["traceEvents"]
    from slipstream.ingest import read

    again = read(target)
    assert again.steps["number"].to_list() == [1]
    assert again.ops["dur_ns"].to_list() == [298_000]


def test_the_server_gives_the_slice_once_to_the_page_alone():
    ready, port = threading.Event(), 19_001
    server = threading.Thread(target=serve, args=(b"{}", port, ready))
    server.start()
    assert ready.wait(10)
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/passwd")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{NAME}") as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == PAGE
        assert gzip.decompress(answer.read()) == b"{}"
    server.join(10)
    assert not server.is_alive()
