"""Finds the rules: every module below this package is imported, every concrete ``Rule`` in it is one."""

import functools
import importlib
import inspect
import pkgutil

from slipstream import rules as package
from slipstream.rules.rule import Rule


@functools.cache
def all_rules() -> dict[str, Rule]:
    """Every rule by its code, in the order of codes.

    Raises:
        ValueError: two rules share a code.
    """
    found: dict[str, Rule] = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(member, Rule) and not inspect.isabstract(member) and member.__module__ == module.name:
                if member.code in found:
                    raise ValueError(f"two rules have the code {member.code}: {found[member.code]!r} and {member!r}")
                found[member.code] = member()
    return dict(sorted(found.items()))
