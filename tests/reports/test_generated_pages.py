"""The pages in ``docs`` that are written from the code."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from slipstream.store import DECLARED, METRICS

TOOL = Path(__file__).parents[2] / "tools" / "docs.py"


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DOCS", tmp_path)
    return module


def test_check_fails_until_written_and_again_after_any_change(docs: ModuleType, tmp_path: Path) -> None:
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    (tmp_path / "tables.md").write_text("changed")
    assert docs.main(["--check"]) == 1


def test_a_page_of_a_rule_that_is_no_more_is_out_of_date_and_removed(docs: ModuleType, tmp_path: Path) -> None:
    docs.main([])
    (tmp_path / "rules").mkdir(exist_ok=True)
    (tmp_path / "rules" / "OLD001.md").write_text("old")
    assert docs.main(["--check"]) == 1
    docs.main([])
    assert not (tmp_path / "rules" / "OLD001.md").exists()


def test_every_table_and_column_has_its_line(docs: ModuleType) -> None:
    text = docs.tables()
    for table in DECLARED.values():
        assert f"### {table.name}\n\n{table.meaning}" in text
        for column in table.columns:
            assert f"| `{column.name}` |" in text


def test_every_metric_has_its_definition_unit_and_source(docs: ModuleType) -> None:
    text = docs.metrics()
    for metric in METRICS:
        assert f"## {metric.name}\n\n{metric.meaning}\n\n**Definition.** {metric.definition}" in text
        assert metric.source in text
        assert all(
            column.unit for column in metric.columns if column.name.endswith(("_ns", "_bytes", "_gbps", "_tflops"))
        )


def test_the_schema_is_json_of_both_kinds(docs: ModuleType) -> None:
    schema = json.loads(docs.pages()[Path("schema/diagnosis.schema.json")])
    assert {"Diagnosis", "RanksDiagnosis"} <= set(schema["$defs"])


def test_wrong_usage(docs: ModuleType) -> None:
    assert docs.main(["--nonsense"]) == 2
