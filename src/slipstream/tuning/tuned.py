"""``tuned.toml``: treatments that were proven, for ``slipstream run --with``."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from slipstream.capture.job import Choice, JobSpec
from slipstream.model import BadInput
from slipstream.tuning import applying
from slipstream.tuning.environment import look_around
from slipstream.tuning.registry import treatment_of, variables_of


def write_tuned(path: Path, choices: Sequence[Choice], words: Sequence[str]) -> None:
    """Write treatments down.

    Args:
        path: of the file.
        choices: to be applied, in this order.
        words: lines about where they come from.
    """
    lines = [f"# {word}" for word in words]
    for choice in choices:
        lines += ["", "[[treatment]]", f"name = {json.dumps(choice.name)}"]
        if choice.options:
            options = ", ".join(f"{name} = {json.dumps(value)}" for name, value in sorted(choice.options.items()))
            lines.append(f"options = {{ {options} }}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_tuned(path: Path) -> tuple[Choice, ...]:
    """Treatments of such a file.

    Raises:
        BadInput: it cannot be read, or names what does not exist.
    """
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
        found = msgspec.convert(text, _Tuned).treatment
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path} is not what slipstream tune writes: {error}") from error
    for choice in found:
        treatment_of(choice)
    return found


def with_treatments(job: JobSpec, choices: Sequence[Choice]) -> JobSpec:
    """A job with treatments, as the capture runs it.

    Args:
        job: to be run.
        choices: its treatments.
    Raises:
        BadInput: one of them does not apply to this machine.
        CannotStart: PyTorch cannot be asked what there is.
    """
    environment = look_around()
    for number, choice in enumerate(choices):
        before = environment.variables | variables_of(choices[:number], environment)
        unfit = treatment_of(choice).applies_to(msgspec.structs.replace(environment, variables=before))
        if unfit is not None:
            raise BadInput(f"{choice} cannot be applied here: {unfit}")
    return msgspec.structs.replace(
        job,
        treatments=(*job.treatments, *choices),
        parts=(*job.parts, applying.PART),
        environment=job.environment | variables_of(choices, environment),
    )


class _Tuned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    treatment: tuple[Choice, ...] = ()
