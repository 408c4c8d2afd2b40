"""The page: self-contained, complete, and alive in a browser."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slipstream
from slipstream.model import BadInput
from slipstream.reports import render
from slipstream.reports.html.timeline import MOST_BARS, joined, timeline
from slipstream.store import Report, Trace
from synthetic import jobs
from synthetic.machine import execute
from synthetic.writer import document

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("html") / "trace.json"
    path.write_text(json.dumps(document(execute(jobs.loader_bound()))))
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    return slipstream.diagnose(trace)


@pytest.fixture(scope="module")
def page(recorded: Report) -> str:
    return render(recorded, "html")


def test_the_page_needs_nothing_else(page: str) -> None:
    """plotly names addresses of maps that it would fetch for maps alone, and the page's policy forbids any."""
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=\"(?!#)", markup)
    assert "default-src 'none'" in markup
    assert len(page.encode()) < MOST_BYTES


def test_the_page_says_what_the_terminal_says(recorded: Report, page: str) -> None:
    for finding in recorded.diagnosis.findings:
        assert f'id="{finding.id}"' in page
    for dismissal in recorded.diagnosis.not_checked:
        assert dismissal.code in page
    assert "waits for the data loader" in page


def test_names_from_a_recording_are_text_not_markup(recorded: Report) -> None:
    import msgspec

    nasty = "</script><img src=x onerror=alert(1)>"
    source = msgspec.structs.replace(recorded.diagnosis.source, path=nasty)
    diagnosis = msgspec.structs.replace(recorded.diagnosis, source=source)
    page = render(msgspec.structs.replace(recorded, diagnosis=diagnosis), "html")
    assert "<img" not in page.replace("plotly", "")[: page.index("application/json")]
    assert "&lt;img src=x" in page


def test_what_changed_is_a_section_of_the_page(recorded: Report) -> None:
    change = slipstream.diff(recorded.tables.trace, recorded.tables.trace)
    page = render(recorded, "html", change=change)
    assert '<section id="change">' in page
    assert "Where the difference comes from" in page
    with pytest.raises(BadInput, match="only html"):
        render(recorded, "text", change=change)


def test_several_ranks_begin_with_an_overview(recorded: Report) -> None:
    page = render([recorded] * 3, "html")
    assert "<h2>3 recordings</h2>" in page
    assert page.count('id="verdict"') == 1


def test_bars_are_joined_only_where_they_cannot_be_seen() -> None:
    pieces = [(0, 100, "long"), (100, 101, "a"), (102, 103, "b"), (104, 105, "c"), (200, 300, "long"), (400, 401, "d")]
    assert joined(pieces, 10) == [
        (0, 100, "long"),
        (100, 105, "3 events, first a"),
        (200, 300, "long"),
        (400, 401, "d"),
    ]
    assert joined(pieces, 0) == pieces


def test_the_step_holds_its_bars_and_not_too_many(recorded: Report) -> None:
    step = timeline(recorded)
    assert step is not None
    kinds = {lane.kind for lane in step.lanes}
    assert {"kernel", "op", "idle", "finding"} <= kinds
    assert sum(len(lane.start_ns) for lane in step.lanes) <= MOST_BARS
    for lane in step.lanes:
        for start, dur in zip(lane.start_ns, lane.dur_ns, strict=True):
            assert start >= 0
            assert start + dur <= step.length_ns


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (420, "dark")])
def test_in_a_browser(browser: Any, page: str, tmp_path: Path, width: int, scheme: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    trouble: list[str] = []
    tab.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda request: trouble.append(request.url) if request.url.startswith("http") else None)
    tab.goto(file.as_uri())

    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    names = "[...document.querySelectorAll('#table-kernels tbody tr')].map(row => row.cells[0].textContent)"
    times = "[...document.querySelectorAll('#table-kernels tbody tr')].map(row => Number(row.cells[3].dataset.key))"
    tab.click("#table-kernels th:nth-child(4) button")
    assert tab.evaluate(times) == sorted(tab.evaluate(times), reverse=True)
    tab.click("#table-kernels th:nth-child(4) button")
    assert tab.evaluate(times) == sorted(tab.evaluate(times))
    tab.click("#table-kernels th:nth-child(1) button")
    assert len(tab.evaluate(names)) > 1
    first = tab.evaluate(names)[0]
    tab.fill("input[data-for=table-kernels]", first)
    shown = "[...document.querySelectorAll('#table-kernels tbody tr')].filter(row => !row.hidden).length"
    assert 1 <= tab.evaluate(shown) < len(tab.evaluate(names))

    tab.locator("#chart-timeline").scroll_into_view_if_needed()
    tab.wait_for_selector("#chart-timeline .plot-container")
    before = tab.evaluate("document.getElementById('chart-timeline').layout.xaxis.range")
    tab.focus("#chart-timeline")
    tab.keyboard.press("+")
    tab.wait_for_timeout(200)
    after = tab.evaluate("document.getElementById('chart-timeline').layout.xaxis.range")
    assert after[1] - after[0] < before[1] - before[0]
    assert tab.locator("#chart-timeline .bars path").count() > 5
    assert trouble == []
    context.close()


def test_a_large_recording_stays_small(recorded: Report) -> None:
    """200,000 events in one step: the figure is joined down, the page stays below its limit."""
    rows = [(start * 5, start * 5 + 4, f"kernel {start % 50}") for start in range(200_000)]
    bars = joined(rows, 1_000_000 // 1_500)
    assert len(bars) < MOST_BARS
    assert sum(int(name.split(" ")[0].replace(",", "")) for _, _, name in bars if "events" in name) <= len(rows)
