"""Formulas for operations and bytes of ops, one family per file; a new file with FAMILY and FORMULAS needs no list."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping

from slipstream.analysis.flops.call import Call, Work

Formula = Callable[[Call], Work | None]

MATRIX = ("matmul", "convolution", "attention")
"""Families that run on matrix units; each may be built from another of them."""


@functools.cache
def formulas() -> Mapping[str, tuple[str, Formula]]:
    """Family and formula by the name of the op."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    return {
        name: (module.FAMILY, formula)
        for module in modules
        if hasattr(module, "FORMULAS")
        for name, formula in module.FORMULAS.items()
    }
