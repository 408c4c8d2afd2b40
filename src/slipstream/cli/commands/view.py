"""``slipstream view``: a slice of a recording in Perfetto, with the findings on it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from slipstream.model import BadInput


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("view")(view)


def view(
    path: Annotated[str, typer.Argument(help="As for analyze.", metavar="PATH")],
    steps: Annotated[
        str | None, typer.Option("--steps", help="Steps to show; else one of median length.", metavar="N[-M]")
    ] = None,
    finding: Annotated[
        str | None,
        typer.Option("--finding", help="Show the surroundings of a finding's instance.", metavar="ID[:INSTANCE]"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the slice to this file (.json or .json.gz).", metavar="FILE", dir_okay=False
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Open one part of a recording in Perfetto.

    Cuts steps, or the surroundings of a finding, out of a recording of any size and adds tracks of its own:
    the findings, why the device stood still, the critical path and the length of the launch queue. Of a
    directory of ranks all are shown on one clock. The slice is served on 127.0.0.1 to the page
    ui.perfetto.dev in your browser, once, and goes nowhere else; without internet write it with -o.

    \b
    Examples:
      slipstream view trace.json.gz
      slipstream view trace.json.gz --steps 3-5 -o slice.json.gz
      slipstream view slipstream-runs/monday/ --finding SYN001-1:2
    """
    from slipstream.cli.serving import PORT, address, serve
    from slipstream.cli.viewing import view as cut
    from slipstream.cli.viewing import wanted

    shown = cut(path, wanted(steps, finding))
    for note in shown.notes:
        print(f"slipstream: {note}", file=sys.stderr)
    if output is not None:
        _write(shown.document, output)
        print(f"slipstream: wrote {shown.what} to {output}: open it in https://ui.perfetto.dev", file=sys.stderr)
        return
    print(f"{shown.what}: {address(PORT)}", flush=True)
    print("slipstream: waiting until the page has fetched it (Ctrl-C to stop)", file=sys.stderr)
    if browser:
        import webbrowser

        webbrowser.open(address(PORT))
    try:
        serve(shown.document, PORT)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _write(document: bytes, output: Path) -> None:
    import gzip

    try:
        output.write_bytes(gzip.compress(document, compresslevel=6) if output.suffix == ".gz" else document)
    except OSError as error:
        raise BadInput(f"cannot write {output}: {error.strerror or error}; name another file with -o") from error
