"""The SLIPSTREAM tab, in a running TensorBoard and a browser."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import slipstream
from slipstream.ingest.location import names_under
from synthetic import jobs
from synthetic.machine import execute
from synthetic.writer import document

pytest.importorskip("tensorboard")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``tensorboard_trace_handler`` leaves it, beside a run of another tool and a trace that is damaged."""
    root = tmp_path_factory.mktemp("logs")
    for name in ("before", "after"):
        (root / name).mkdir()
        trace = root / name / "host_1.1700000000000.pt.trace.json"
        trace.write_text(json.dumps(document(execute(jobs.loader_bound()))))
    (root / "after" / "host_2.1700000000000.pt.trace.json").write_text("this is no trace")
    (root / "after" / "notes.json").write_text("{}")
    return root


@pytest.fixture(scope="module")
def address(logdir: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", str(port)]
    server = subprocess.Popen([*command, "--load_fast=false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail("TensorBoard did not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return str(answer.read().decode())


def test_what_lies_under_a_log_directory(logdir: Path, tmp_path: Path) -> None:
    assert names_under(str(logdir)) == [
        "after/host_1.1700000000000.pt.trace.json",
        "after/host_2.1700000000000.pt.trace.json",
        "before/host_1.1700000000000.pt.trace.json",
    ]
    run = tmp_path / "runs" / "one"
    (run / "rank0").mkdir(parents=True)
    (run / "run.json").touch()
    (run / "rank0" / "x.pt.trace.json").touch()
    assert names_under(str(tmp_path)) == ["runs/one"]
    assert names_under(str(run)) == ["."]
    assert names_under(str(tmp_path / "missing")) == []


def test_the_server_has_the_tab_and_its_reports(address: str) -> None:
    plugins = json.loads(fetched(f"{address}/data/plugins_listing"))
    assert plugins["slipstream"]["enabled"]
    assert plugins["slipstream"]["tab_name"] == "Slipstream"
    base = f"{address}/data/plugin/slipstream"
    names = json.loads(fetched(f"{base}/traces"))
    page = fetched(f"{base}/report?trace={names[0]}")
    assert "waits for the data loader" in page
    for name, status in (("../../etc/passwd", 404), ("nothing", 404), (names[1], 422)):
        with pytest.raises(urllib.error.HTTPError) as error:
            fetched(f"{base}/report?trace={name}")
        assert error.value.code == status


def test_in_a_browser(address: str) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = opened.new_page(viewport={"width": 1400, "height": 900})
        tab.goto(f"{address}/#slipstream")
        # The tab is a frame of TensorBoard's, and the report a frame within it.
        outer = tab.frame_locator("iframe").first
        outer.locator("#recording").wait_for(timeout=60_000)
        assert outer.locator("#recording option").count() == 3
        report = outer.frame_locator("iframe")
        report.locator("#verdict").wait_for(timeout=120_000)
        assert "data loader" in report.locator("#verdict").inner_text()
        outer.locator("#recording").select_option("after/host_2.1700000000000.pt.trace.json")
        report.get_by_text("trace").first.wait_for(timeout=60_000)
        opened.close()


def test_steps_as_scalars(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from slipstream.integrations.tensorboard import write_scalars
    from slipstream.model import BadInput

    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(8, 8)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(30):\n    model(torch.randn(4, 8)).sum().backward()\n    optimizer.step()\n"
    )
    run = tmp_path / "run"
    subprocess.run(
        [sys.executable, "-m", "slipstream", "run", "--quiet", "-o", str(run), str(script)], check=True, timeout=240
    )
    assert write_scalars(run, tmp_path / "events") == 30
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    steps = events.Scalars("slipstream/step_ms")
    assert [one.step for one in steps] == [*range(30)]
    assert all(one.value > 0 for one in steps)
    assert {"slipstream/backward_ms", "slipstream/optimizer_ms"} <= set(events.Tags()["scalars"])
    trace = slipstream.load(run)
    assert not isinstance(trace, list)
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(document(execute(jobs.loader_bound()))))
    with pytest.raises(BadInput, match="no measured steps"):
        write_scalars(foreign, tmp_path / "none")
