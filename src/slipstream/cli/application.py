"""Puts the subcommands together: every module in ``commands`` registers itself."""

import importlib
import pkgutil
from typing import Annotated

import typer

from slipstream import __version__
from slipstream.cli import commands as package


def application() -> typer.Typer:
    """The command line with all its subcommands."""
    app = typer.Typer(
        name="slipstream",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        callback=_slipstream,
    )
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}").register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"slipstream {__version__}")
        raise typer.Exit


def _slipstream(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find what holds a PyTorch training run back.

    \b
    Examples:
      slipstream run train.py --epochs 1
      slipstream analyze trace.json.gz
    """
