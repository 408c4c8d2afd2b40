"""What a tuning keeps, written into the user's source as a patch."""

import importlib.util
import tokenize
from collections.abc import Sequence
from pathlib import Path

from slipstream.capture import JobSpec
from slipstream.model import BadInput
from slipstream.tuning import Choice, treatment_of
from slipstream.tuning.patching import diff_of, patched


def write_patch(job: JobSpec, choices: Sequence[Choice], file: Path) -> list[str]:
    """Write a patch of the job's script for those treatments that are a keyword or a line.

    Args:
        job: whose script.
        choices: what is kept.
        file: for the patch; not written where nothing can be patched.
    Returns:
        Lines to tell: what was written, and what is left to be done by hand.
    Raises:
        OSError: a file cannot be read or written.
    """
    permanents = [treatment_of(choice).permanent() for choice in choices]
    lines: list[str] = []
    by_hand = [one for one in permanents if one.edit is None]
    edits = [one for one in permanents if one.edit is not None]
    source = _source_of(job)
    if source is None:
        return [f"no patch: the source of {job.target} is not found"]
    try:
        with tokenize.open(source) as opened:  # it knows the encoding that a source declares
            encoding, before = opened.encoding, opened.read()
        found = patched(before, [one.edit for one in edits if one.edit is not None])
    except (BadInput, SyntaxError, UnicodeDecodeError) as error:
        return [f"no patch: {source}: {error}"]
    by_hand += [one for one, made in zip(edits, found.made, strict=True) if not made]
    text = diff_of(source, before, found.source, Path.cwd())
    if text:
        file.write_text(text, encoding=encoding)
        lines.append(f"wrote {file}: git apply {file}, or patch -p1 < {file}")
    for one in by_hand:
        how = one.snippet or "\n".join(f"export {name}={value}" for name, value in one.variables.items())
        place = "" if one.edit is None else f" (no place for it in {source.name})"
        lines.append(f"by hand{place}: {one.summary}: {'; '.join(how.splitlines())}")
    return lines


def _source_of(job: JobSpec) -> Path | None:
    if not job.is_module:
        return Path(job.target)
    try:
        found = importlib.util.find_spec(job.target)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{job.target}.__main__")
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found is not None and found.origin else None
