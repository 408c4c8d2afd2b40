import msgspec
import pytest

from slipstream.model import Diagnosis, Dismissal, Evidence, Location
from slipstream.reports import redact, render
from slipstream.reports.redaction import Identity, redact_diagnosis
from slipstream.store import Report

NOBODY = Identity()


def with_texts(report: Report, *reasons: str, path: str = "trace.json") -> Diagnosis:
    document = report.diagnosis
    return msgspec.structs.replace(
        document,
        source=msgspec.structs.replace(document.source, path=path),
        findings=(),
        dismissed=tuple(Dismissal(code="X", reason=reason) for reason in reasons),
    )


def cleaned(report: Report, text: str, identity: Identity = NOBODY, path: str = "trace.json") -> str:
    return redact_diagnosis(with_texts(report, text, path=path), identity).dismissed[0].reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /home/ada/proj/train.py(12): main", "see <path>/train.py(12): main"),
        ("open('/data/my set/part one.bin')", "open('<path>/part one.bin')"),
        (r"C:\Users\ada\proj\train.py:12", "<path>/train.py:12"),
        ("C:/Users/ada/train.py", "<path>/train.py"),
        (r"\\server\share\train.py", "<path>/train.py"),
        ("s3://bucket/ada/trace.json.gz was cut", "<path>/trace.json.gz was cut"),
        ("mail ada@node.example.org", "mail <user>@<host>"),
        ("rank at 10.1.22.3 is late", "rank at <host> is late"),
        ("home/ada/proj/train.py", "home/<user>/proj/train.py"),
    ],
)
def test_paths_people_and_hosts_go(training: Report, text: str, expected: str) -> None:
    assert cleaned(training, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.13.0.1+cu128 at 51 % and/or 1/2 of it",
        "/dev/shm is full",
        "see https://docs.pytorch.org/docs/stable/data.html",
        "void at::native::foo<float, 4>(int)::{lambda(int)#1}",
        "Memcpy HtoD (Pageable -> Device)",
        "a / b // c",
    ],
)
def test_what_tells_nothing_stays(training: Report, text: str) -> None:
    assert cleaned(training, text) == text


def test_a_name_from_a_home_directory_goes_everywhere_else(training: Report) -> None:
    document = with_texts(training, "/home/lovelace/x/a.py", "cache of lovelace is cold; lovelaces stays")
    reasons = [dismissal.reason for dismissal in redact_diagnosis(document, NOBODY).dismissed]
    assert reasons == ["<path>/a.py", "cache of <user> is cold; lovelaces stays"]


def test_short_and_impersonal_names_are_no_words(training: Report) -> None:
    text = "/home/al/a.py and /home/root/b.py: the root of al"
    assert cleaned(training, text) == "<path>/a.py and <path>/b.py: the root of al"


def test_the_worker_in_the_name_of_a_tensorboard_file_is_a_host(training: Report) -> None:
    path = "log/node-17_4242.1700000000.pt.trace.json.gz"
    document = redact_diagnosis(with_texts(training, "node-17 was slow", path=path), NOBODY)
    assert document.source.path == "log/<host>_4242.1700000000.pt.trace.json.gz"
    assert document.dismissed[0].reason == "<host> was slow"


def test_known_names_and_longest_first(training: Report) -> None:
    identity = Identity(users=frozenset({"ada"}), hosts=frozenset({"node7", "node7.example"}))
    assert cleaned(training, "ada on node7.example", identity) == "<user> on <host>"


def test_a_folder_with_spaces_is_known_from_the_places(training: Report) -> None:
    place = Location(file="/data/Ada L/train.py", line=3, function="main", precision="statement")
    finding = msgspec.structs.replace(
        training.diagnosis.findings[0],
        location=place,
        evidence=(Evidence(event="/data/Ada L/train.py(3): main", ts_ns=0, dur_ns=1),),
    )
    document = msgspec.structs.replace(training.diagnosis, findings=(finding,))
    redacted = redact_diagnosis(document, NOBODY).findings[0]
    assert redacted.location is not None
    assert (redacted.location.file, redacted.evidence[0].event) == ("<path>/train.py", "<path>/train.py(3): main")


@pytest.mark.parametrize("name", ["cuda", "kineto", "compute", "statement", "diagnosis"])
def test_words_of_the_contract_survive_a_user_of_that_name(training: Report, name: str) -> None:
    redacted = redact_diagnosis(training.diagnosis, Identity(users=frozenset({name})))
    assert redacted.source.device_kind == "cuda"
    assert redacted.breakdown == training.diagnosis.breakdown


def test_figures_stay(training: Report) -> None:
    redacted = redact_diagnosis(training.diagnosis, NOBODY)
    assert redacted.source.path == "<path>/trace.json.gz"
    assert msgspec.structs.replace(redacted, source=training.diagnosis.source) == training.diagnosis


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_no_format_lets_a_name_through(training: Report, format: str) -> None:
    assert "/home/" in render(training, format)
    assert "ada" not in render(redact(training, NOBODY), format)
    assert "/home/" not in render(redact(training, NOBODY), format)
