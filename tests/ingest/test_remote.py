"""Recordings behind an address, and what is said where they cannot be had."""

import gzip
import subprocess
import sys

import fsspec
import pytest

from slipstream import load
from slipstream.ingest import locate, read
from slipstream.model import BadInput, MissingDependency, MissingInput

WITHOUT_BACKENDS = """
import sys
for package in ("s3fs", "gcsfs", "aiohttp", "huggingface_hub"):
    sys.modules[package] = None
from slipstream.cli import main
for address in sys.argv[1:]:
    sys.argv = ["slipstream", "analyze", address]
    try:
        main()
    except SystemExit as ending:
        print(ending.code)
"""


def test_packages_that_are_missing_are_named_at_the_command_line():
    addresses = (
        "s3://b/t.json.gz",
        "gs://b/run",
        "https://example.org/t.json",
        "hf://datasets/a/b/t.json",
        "nowhere://y",
    )
    command = [sys.executable, "-W", "error", "-c", WITHOUT_BACKENDS, *addresses]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["2"] * 5
    assert run.stderr.splitlines() == [
        "slipstream: reading s3:// needs s3fs: pip install s3fs",
        "slipstream: reading gs:// needs gcsfs: pip install gcsfs",
        "slipstream: reading https:// needs aiohttp and requests: pip install aiohttp requests",
        "slipstream: reading hf:// needs huggingface_hub: pip install huggingface_hub",
        "slipstream: nowhere://y cannot be read: Protocol not known: nowhere.",
    ]


def test_the_errors_are_those_of_the_tree(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependency):
        locate("s3://bucket/run")
    with pytest.raises(MissingDependency):
        read("simplecache::s3://bucket/trace.json")
    with pytest.raises(BadInput, match="Protocol not known"):
        locate("nowhere://bucket/run")


@pytest.mark.parametrize("path", ["", " "])
def test_no_path_at_all_is_not_the_current_folder(kineto, monkeypatch, path):
    kineto.write(kineto.text([kineto.op()]))
    monkeypatch.chdir(kineto.folder)
    assert load(".").ops.height == 1
    with pytest.raises(MissingInput, match="no path"):
        locate(path)


def test_a_connection_that_breaks_while_reading_is_told(kineto, monkeypatch):
    system = fsspec.filesystem("memory")
    system.pipe("/broken/trace.json", kineto.text([kineto.op()]).encode())

    def broken(*_arguments):
        raise TimeoutError("timed out")

    monkeypatch.setattr(type(system.open("/broken/trace.json")), "read", broken)
    with pytest.raises(BadInput, match=r"memory://broken/trace\.json cannot be reached: timed out"):
        read("memory://broken/trace.json")


def test_a_file_that_went_away_after_it_was_found(kineto):
    system = fsspec.filesystem("memory")
    system.pipe("/gone/rank0.json", kineto.text([kineto.op()]).encode())
    (found,) = locate("memory://gone")
    system.rm("/gone/rank0.json")
    with pytest.raises(MissingInput, match="gone"):
        read(found)


def test_a_remote_run_folder(kineto):
    system = fsspec.filesystem("memory")
    system.pipe("/fetched/run/run.json", b"{}")
    text = gzip.compress(kineto.text([kineto.op()]).encode())
    for rank in (0, 1):
        system.pipe(f"/fetched/run/rank{rank}/trace.json.gz", text)
    traces = load("memory://fetched/run")
    assert [(trace.source.rank, trace.source.path, trace.ops.height) for trace in traces] == [
        (0, "memory://fetched/run", 1),
        (1, "memory://fetched/run", 1),
    ]


@pytest.mark.parametrize("call", ["info", "open"])
def test_what_a_network_library_raises_needs_to_be_no_oserror(kineto, monkeypatch, call):
    class ConnectError(Exception):
        pass

    system = fsspec.filesystem("memory")
    system.pipe("/offline/trace.json", kineto.text([kineto.op()]).encode())

    def offline(*_arguments, **_options):
        raise ConnectError("[Errno -2] Name or service not known")

    monkeypatch.setattr(type(system), call, offline)
    with pytest.raises(BadInput, match=r"memory://offline/trace\.json cannot be reached: .*not known\."):
        read("memory://offline/trace.json")


def test_a_defect_of_the_reader_is_not_taken_for_the_network(kineto, monkeypatch):
    fsspec.filesystem("memory").pipe("/defect/trace.json", kineto.text([kineto.op()]).encode())

    def defect(*_arguments):
        raise OSError("not the network's")

    monkeypatch.setattr("slipstream.ingest.reading.read_kineto", defect)
    with pytest.raises(OSError, match="not the network's") as raised:
        read("memory://defect/trace.json")
    assert not isinstance(raised.value, BadInput)
