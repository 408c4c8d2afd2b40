"""Where results go and how they look there: what commands share on the command line."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from slipstream.model import BadInput

if TYPE_CHECKING:
    from slipstream.reports import Style

Format = Annotated[Literal["text", "json", "markdown"], typer.Option("--format", help="How the result is written.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the result to this file.", metavar="FILE", dir_okay=False)
]
Recording = Annotated[
    str, typer.Argument(help="Trace file, TensorBoard log directory, run folder or directory of ranks.", metavar="PATH")
]
Redact = Annotated[
    bool, typer.Option("--redact", help="Replace user names, hosts, home directories and absolute paths.")
]

_NARROWEST, _WIDEST, _USUAL = 60, 120, 100
_PIPE_CLOSED = 128 + 13
"""What a shell reports of a program that wrote to a closed pipe."""


def style_for(stream: TextIO) -> "Style":
    """Width and colours that suit a stream: colours only on a terminal and without NO_COLOR."""
    from slipstream.reports import Style

    terminal = stream.isatty()
    color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if not terminal and "COLUMNS" not in os.environ:
        return Style(width=_USUAL, color=color)
    columns = shutil.get_terminal_size((_USUAL, 24)).columns
    return Style(width=max(_NARROWEST, min(_WIDEST, columns)), color=color)


def style_of(output: Path | None) -> "Style":
    """The style for a file, or for standard output where there is none."""
    from slipstream.reports import Style

    return style_for(sys.stdout) if output is None else Style()


def emit(text: str, output: Path | None) -> None:
    """Write a result to standard output or to a file.

    Raises:
        BadInput: the file cannot be written.
    """
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"cannot write {output}: {error.strerror or error}; name another file with -o") from error
        print(f"slipstream: wrote {output}", file=sys.stderr)
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`); Python would complain again when it closes the stream.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise typer.Exit(_PIPE_CLOSED) from None
