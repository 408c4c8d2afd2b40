"""Derived tables and metrics, one file each: tables in, tables out, pure and deterministic.

A module ``analysis/<table>.py`` with a function ``build(tables) -> polars.DataFrame`` fills the derived table
of that name; nothing else registers it.
"""

import importlib
import pkgutil

from slipstream.store import DERIVED, Builder, Tables, Trace


def builders() -> dict[str, Builder]:
    """The function that fills each derived table, by table name."""
    declared = {table.name for table in DERIVED}
    modules = {module.name for module in pkgutil.iter_modules(__path__)}
    return {name: importlib.import_module(f"{__name__}.{name}").build for name in sorted(declared & modules)}


def tables_of(trace: Trace) -> Tables:
    """All tables of a recording; derived ones are built when first asked for."""
    return Tables(trace, builders())
