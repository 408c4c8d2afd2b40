"""The public page of each rule, drawn from its class docstring: ``docs/rules/<CODE>.md``."""

from slipstream.rules.registry import all_rules
from slipstream.rules.rule import HEADINGS, Rule

_CLASSES = {
    "exact": "exact: training computes the same",
    "rounding": "rounding: the same up to floating-point rounding",
    "semantic": "semantic: training computes something else, so it needs consent",
}


def pages() -> dict[str, str]:
    """Name of each file below ``docs/rules/`` and its text, the index ``README.md`` included."""
    rules = all_rules()
    return {"README.md": _index(rules)} | {f"{code}.md": page(rule) for code, rule in rules.items()}


def page(rule: Rule) -> str:
    """One rule's page in Markdown."""
    sections = rule.sections()
    stream = (
        " It changes which random numbers are drawn: single runs do not repeat." if rule.changes_random_stream else ""
    )
    reads = ", ".join(f"`{name}`" for name in rule.needs)
    parts = [
        f"# {rule.code}: {rule.name}",
        f"Status: {rule.status}. Fix class: {_CLASSES[rule.fix_class]}.{stream} Reads {reads}.",
        *(f"## {heading}\n\n{sections[heading]}" for heading in HEADINGS if heading in sections),
    ]
    return "\n\n".join(parts) + "\n"


def _index(rules: dict[str, Rule]) -> str:
    rows = "\n".join(
        f"| [{code}]({code}.md) | {rule.name} | {rule.fix_class} | {rule.status} |" for code, rule in rules.items()
    )
    return (
        "# Rules\n\nGenerated from the rules' own docstrings; `slipstream rules CODE` prints the same.\n\n"
        f"| code | problem | fix class | status |\n|---|---|---|---|\n{rows}\n"
    )
