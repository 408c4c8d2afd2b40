import json
import os
from pathlib import Path

import jsonschema
import msgspec
import pytest

from slipstream.model import BadInput, Diagnosis, RanksDiagnosis, json_schema
from slipstream.reports import Page, Rows, Style, formats, render
from slipstream.store import Report

GOLDEN = Path(__file__).parent / "golden"
SUFFIX = {"text": "txt", "json": "json", "markdown": "md"}
CASES = ("training", "ranks", "cpu_training", "no_device_work")


def test_formats_are_found_by_their_files() -> None:
    assert formats() == ("collapsed", "csv", "html", "json", "markdown", "text")


@pytest.mark.parametrize("format", SUFFIX)
@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, format: str, request: pytest.FixtureRequest) -> None:
    """Update with SLIPSTREAM_UPDATE_GOLDEN=1 pytest tests/reports, then read the difference."""
    shown = render(request.getfixturevalue(case), format)
    golden = GOLDEN / f"{case}.{SUFFIX[format]}"
    if os.environ.get("SLIPSTREAM_UPDATE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
def test_json_follows_the_published_schema_and_reads_back(case: str, request: pytest.FixtureRequest) -> None:
    document = request.getfixturevalue(case)
    text = render(document, "json")
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(text))
    back = msgspec.json.decode(text, type=Diagnosis | RanksDiagnosis)
    expected = [report.diagnosis for report in document] if isinstance(document, list) else document.diagnosis
    assert (list(back.ranks) if isinstance(back, RanksDiagnosis) else back) == expected


def test_the_schema_refuses_what_is_no_diagnosis(training: Report) -> None:
    document = json.loads(render(training, "json"))
    del document["window"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(document)


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("case", CASES)
def test_text_fits_the_terminal(case: str, width: int, request: pytest.FixtureRequest) -> None:
    for line in render(request.getfixturevalue(case), "text", Style(width=width)).splitlines():
        # Commands to be copied are never broken.
        assert len(line) <= width or line.startswith("  slipstream ")


def test_colours_only_where_asked_for(training: Report) -> None:
    assert "\x1b[" not in render(training)
    assert "\x1b[" in render(training, style=Style(color=True))


def test_many_ranks_are_shown_side_by_side_and_one_in_full(ranks: list[Report]) -> None:
    text = render(ranks)
    assert text.count("Where the step goes") == 1
    assert render(ranks[:2]).count("Where the step goes") == 2


def test_on_a_cpu_the_loaders_own_ops_are_explained(cpu_training: Report, training: Report) -> None:
    parts = tuple(
        msgspec.structs.replace(part, part=part.part.replace("preprocessing", "loader"))
        for part in cpu_training.diagnosis.breakdown
    )
    waiting = msgspec.structs.replace(cpu_training.diagnosis, breakdown=parts)
    note = "ops that the data loader runs"
    assert note in render(msgspec.structs.replace(cpu_training, diagnosis=waiting))
    assert note not in render(cpu_training)
    assert note not in render(training)


@pytest.mark.parametrize(("longest_ms", "told"), [(189, True), (191, False)])
def test_a_mean_step_far_from_the_median_is_explained(training: Report, longest_ms: int, told: bool) -> None:
    steps = tuple(msgspec.structs.replace(step, dur_ns=longest_ms * 1_000_000) for step in training.diagnosis.steps)
    uneven = msgspec.structs.replace(training.diagnosis, steps=steps)
    text = render(msgspec.structs.replace(training, diagnosis=uneven))
    assert ("the parts add up to the mean step, 200 ms" in text) is told


def test_recordings_without_distinct_ranks_are_named_by_their_files(training: Report) -> None:
    text = render([training, training])
    assert text.startswith("2 recordings\nrecording ")
    assert "\ntrace.json.gz" in text


def test_markdown_escapes_what_it_would_interpret(training: Report) -> None:
    odd = msgspec.structs.replace(
        training.diagnosis,
        findings=(msgspec.structs.replace(training.diagnosis.findings[0], title="a|b *c* <d> `e_f` `g"),),
    )
    shown = render(msgspec.structs.replace(training, diagnosis=odd), "markdown")
    assert r"INP001 a\|b \*c\* \<d\> \`e\_f\` \`g" in shown


def test_markdown_keeps_code_between_two_backticks(training: Report) -> None:
    assert "record with `slipstream run`" in render(training, "markdown")


def test_markup_in_names_is_only_text(training: Report) -> None:
    odd = msgspec.structs.replace(
        training.diagnosis,
        findings=(msgspec.structs.replace(training.diagnosis.findings[0], title="[red]x[/red] :smile:"),),
    )
    assert "[red]x[/red] :smile:" in render(msgspec.structs.replace(training, diagnosis=odd))


ROWS = Rows(
    kind="table",
    columns=("name", "ns"),
    rows=[{"name": "a|b", "ns": 1}, {"name": None, "ns": 2**63}, {"name": "c", "ns": None}],
    at_most=2,
)


def test_rows_as_text_tell_what_was_left_out() -> None:
    assert render(ROWS) == (
        "name                   ns\na|b                     1\n      9223372036854775808\n"
        "1 more rows: other formats hold all of them\n"
    )


def test_long_text_gives_way_and_figures_never() -> None:
    long = {"name": "x" * 90, "ns": 123_456_789_012, "share": 0.123456}
    rows = Rows(kind="table", columns=tuple(long), rows=[long], wrapped=False)
    row = render(rows, style=Style(width=60)).splitlines()[1]
    assert row.split()[1:] == ["123456789012", "0.123456"]
    assert "…" in row
    assert len(row) <= 60
    assert len(render(msgspec.structs.replace(rows, wrapped=True), style=Style(width=60)).splitlines()) > 2


def test_rows_for_machines_are_complete_and_keep_null() -> None:
    assert json.loads(render(ROWS, "json")) == {
        "format_version": 1,
        "kind": "table",
        "columns": ["name", "ns"],
        "rows": [{"name": "a|b", "ns": 1}, {"name": None, "ns": 2**63}, {"name": "c", "ns": None}],
    }
    assert render(ROWS, "csv") == "name,ns\na|b,1\n,9223372036854775808\nc,\n"


def test_rows_as_markdown() -> None:
    assert render(ROWS, "markdown").splitlines()[:3] == ["| name | ns |", "|---|---|", r"| a\|b | 1 |"]


def test_page_in_every_format_that_has_pages() -> None:
    page = Page(
        kind="rule",
        title="X001 x",
        facts={"code": "X001", "fix_class": "exact", "note": None},
        sections={"Fix": "Do it."},
    )
    assert render(page) == "X001 x\nfix class: exact\n\nFix\n  Do it.\n"
    assert render(page, "markdown") == "# X001 x\n\nfix class: exact\n\n## Fix\n\nDo it.\n"
    assert json.loads(render(page, "json"))["sections"] == {"Fix": "Do it."}
    with pytest.raises(BadInput, match="one table"):
        render(page, "csv")


def test_a_page_is_wrapped_anew_but_lists_keep_their_lines() -> None:
    page = Page(kind="rule", title="X", facts={}, sections={"Fix": "one\ntwo\n\n- a\n- b\n\n    code\n    more"})
    assert render(page).endswith("  one two\n\n  - a\n  - b\n\n      code\n      more\n")


def test_unknown_format_and_nothing_to_show(training: Report) -> None:
    with pytest.raises(BadInput, match="choose one of collapsed, csv, html, json, markdown, text"):
        render(training, "yaml")
    with pytest.raises(BadInput, match="no report"):
        render([])
    with pytest.raises(BadInput, match="one table"):
        render(training, "csv")
