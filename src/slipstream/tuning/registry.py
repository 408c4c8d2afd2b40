"""Finds the treatments: every module of ``treatments`` holds one concrete ``Treatment``."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Sequence

import msgspec

from slipstream.capture.job import Choice
from slipstream.model import BadInput
from slipstream.tuning import treatments as package
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Treatment


@functools.cache
def all_treatments() -> dict[str, type[Treatment]]:
    """Every treatment's class by its name, in the order of names."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return {name: _class_in(name) for name in found}


def treatment_of(choice: Choice) -> Treatment:
    """The treatment that a choice names, set as it says.

    Raises:
        BadInput: there is no such treatment, or it has no such setting.
    """
    if choice.name not in all_treatments():
        raise BadInput(f"there is no treatment {choice.name}: it is one of {', '.join(all_treatments())}")
    return all_treatments()[choice.name](choice.options)


def variables_of(choices: Sequence[Choice], environment: Environment) -> dict[str, str]:
    """Environment variables that treatments set; each sees those of the ones before it.

    Args:
        choices: treatments, in their order.
        environment: with the variables that the job inherits.
    Raises:
        BadInput: there is no such treatment or setting.
    """
    found: dict[str, str] = {}
    for choice in choices:
        now = msgspec.structs.replace(environment, variables=environment.variables | found)
        found |= treatment_of(choice).variables(now)
    return found


def _class_in(name: str) -> type[Treatment]:
    module = importlib.import_module(f"{package.__name__}.{name}")
    (found,) = (
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Treatment) and not inspect.isabstract(member) and member.__module__ == module.__name__
    )
    return found
