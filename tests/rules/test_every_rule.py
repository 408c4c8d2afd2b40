"""What holds for every rule, also for those that are not written yet."""

import ast
import re

import pytest

from slipstream.model import Finding
from slipstream.rules.pages import page, pages
from slipstream.rules.registry import all_rules
from slipstream.rules.rule import HEADINGS, Rule
from slipstream.store import DECLARED

RULES = list(all_rules().values())


@pytest.fixture(params=RULES, ids=lambda rule: rule.code)
def rule(request) -> Rule:
    return request.param


def finding_of(rule: Rule) -> Finding:
    return rule.finding(title="t", cost_ns=1, steps=1)


def test_the_docstring_has_the_five_headings_in_order(rule):
    assert tuple(rule.sections()) == HEADINGS
    assert all(len(text) > 40 for text in rule.sections().values())


def test_the_code_is_well_formed_and_the_name_states_a_problem(rule):
    assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.code)
    assert not re.search(r"\b(use|enable|add|set|increase)\b", rule.name)


def test_needs_name_declared_tables_and_columns(rule):
    for name, columns in rule.needs.items():
        assert set(columns) <= set(DECLARED[name].schema)


def test_the_fix_says_what_to_do_and_its_snippet_is_python(rule):
    fix = rule.fix(finding_of(rule))
    assert fix is not None
    assert len(fix.summary) > 60
    ast.parse(fix.snippet)


def test_consent_is_needed_exactly_for_what_changes_the_training(rule):
    fix = rule.fix(finding_of(rule))
    assert fix is not None
    assert fix.needs_consent is (rule.fix_class == "semantic")


def test_no_rule_asks_for_a_bigger_batch(rule):
    if rule.code == "MEM003":  # the one that first makes sure that nothing else holds the device up
        return
    fix = rule.fix(finding_of(rule))
    assert fix is not None
    for text in (fix.summary, fix.snippet or "", *rule.sections().values()):
        assert not re.search(r"(bigger|larger|increase\w*|raise)[\w ]{0,20} batch(?!es)", text, re.I)


def test_every_rule_has_a_page_and_stands_in_the_index(rule):
    found = pages()
    assert found[f"{rule.code}.md"] == page(rule)
    assert f"({rule.code}.md)" in found["README.md"]
    for heading in HEADINGS:
        assert f"## {heading}\n" in found[f"{rule.code}.md"]
