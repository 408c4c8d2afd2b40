"""Top-level names that are nobody's own training code: the standard library and well-known packages.

Paths in recordings come without their prefix, so a first component is often all there is to go by. The names are
data: ``known_packages.toml``.
"""

import sys
import tomllib
from importlib import resources

_NAMES = tomllib.loads(resources.files("slipstream.analysis").joinpath("known_packages.toml").read_text("utf-8"))

STANDARD_DIRECTORIES: frozenset[str] = frozenset(_NAMES["standard_directories"])
"""Directories of the standard library. Its other names are single files: ``code/train.py`` is the user's."""
STANDARD_FILES: frozenset[str] = (sys.stdlib_module_names | set(_NAMES["standard_files_of_old"])) - (
    STANDARD_DIRECTORIES - set(_NAMES["standard_directories_or_files"])
)
"""Single files of the standard library, without their suffix."""
KNOWN_PACKAGES: frozenset[str] = frozenset(_NAMES["packages"])
"""Packages that people train with, by their directory."""
KNOWN_FILES: frozenset[str] = frozenset(_NAMES["files"])
"""Packages that are one file, without its suffix; a file named like any other package is the user's."""
AMBIGUOUS_PACKAGES: dict[str, frozenset[str]] = {
    name: frozenset(inside) for name, inside in _NAMES["ambiguous"].items()
}
"""Packages with a name that people give to their own directories too, and what lies in the well-known one."""
