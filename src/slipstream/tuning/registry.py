"""Finds the treatments: every module of ``treatments`` holds one concrete ``Treatment``."""

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Sequence

import msgspec

from slipstream.capture.job import Choice
from slipstream.model import BadInput
from slipstream.tuning import treatments as package
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Setting, Treatment


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


def choices_of(text: str) -> tuple[Choice, ...]:
    """Treatments as a command line names them: ``trim_padding,fused-optimizer(form=foreach)``.

    Raises:
        BadInput: it names nothing, or something that does not exist.
    """
    found = []
    for name, given in re.findall(r"\s*([^,()]+?)\s*(?:\(([^()]*)\))?\s*(?:,|$)", text):
        kind = all_treatments().get(name.replace("-", "_"))
        options = {}
        for part in filter(None, (part.strip() for part in given.split(","))):
            option, _, value = (word.strip() for word in part.partition("="))
            options[option] = value if kind is None else _as_setting(kind, option, value)
        found.append(Choice(name=name.replace("-", "_"), options=options))
    if not found:
        raise BadInput("no treatment is named: slipstream tune --list shows them")
    for choice in found:
        treatment_of(choice)
    return tuple(found)


def _as_setting(kind: type[Treatment], option: str, value: str) -> Setting:
    """A value of the type that the treatment's own has; what does not fit is left for the treatment to refuse."""
    own = kind.defaults.get(option)
    if isinstance(own, bool):
        return {"true": True, "false": False}.get(value.lower(), value)
    try:
        return value if own is None else type(own)(value)
    except ValueError:
        return value


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
