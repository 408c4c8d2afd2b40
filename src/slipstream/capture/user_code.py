"""Which code is the user's own, and how the trace writes its file names."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

import slipstream

LAUNCHERS = frozenset({"torch", "accelerate", "deepspeed", "lightning", "ray", "debugpy", "coverage"})
"""Packages whose modules are run with -m to start somebody else's script."""

Place = tuple[CodeType, int]
"""Code and line of a statement in the user's code."""


class UserCode:
    """Tells the user's files from libraries.

    Libraries are the standard library, everything in site-packages and slipstream itself; but whatever lies beside
    the script that was started is the user's, wherever that is.

    Args:
        script: file of ``__main__``; None: not known.
        module: name that ``python -m`` was given; None: a script was started.
    """

    def __init__(self, script: str | None, module: str | None) -> None:
        self._libraries = _roots()
        self._own = _own_roots(script, module, self._libraries)
        self._known: dict[str, bool] = {}
        top = module.partition(".")[0] if module else None
        self.package = top if top not in LAUNCHERS else None
        """Top-level package of the module that was started, or None."""

    @classmethod
    def of_this_process(cls) -> "UserCode":
        """For the script or module that this interpreter was started with."""
        main = sys.modules.get("__main__")
        spec = getattr(main, "__spec__", None)
        return cls(getattr(main, "__file__", None), spec.name if spec is not None else None)

    def owns(self, path: str) -> bool:
        """Whether the code of a file is the user's.

        Args:
            path: ``co_filename`` of its code.
        """
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._decide(path)
        return known

    def _decide(self, path: str) -> bool:
        if path.startswith("<"):
            return False
        absolute = str(Path(path).absolute())
        if absolute.startswith(_HERE) and not absolute.startswith(_DEMO):
            return False
        return absolute.startswith(self._own) or not absolute.startswith(self._libraries)

    def innermost(self, frame: FrameType | None) -> Place | None:
        """The innermost statement of the user's code on a stack, or None."""
        known = self._known
        while frame is not None:
            code = frame.f_code
            owned = known.get(code.co_filename)
            if owned is None:
                owned = self.owns(code.co_filename)
            if owned:
                return code, frame.f_lineno
            frame = frame.f_back
        return None

    def frames(self, frame: FrameType | None) -> list[FrameType]:
        """The frames of the user's code on a stack, outermost first."""
        found = []
        while frame is not None:
            if self.owns(frame.f_code.co_filename):
                found.append(frame)
            frame = frame.f_back
        return found[::-1]


_HERE = str(Path(slipstream.__file__).absolute().parent) + os.sep
_DEMO = _HERE + "demo" + os.sep


def _roots() -> tuple[str, ...]:
    """Folders that hold libraries, each with a separator at its end."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), str(Path(os.__file__).parent)]
    return _with_separator(folders)


def _own_roots(script: str | None, module: str | None, libraries: tuple[str, ...]) -> tuple[str, ...]:
    if script is None or (module is not None and module.partition(".")[0] in LAUNCHERS):
        return ()
    path = Path(script).absolute()
    if not str(path).startswith(libraries):
        return ()  # it is not among the libraries anyhow
    # A script in bin/ of a library folder, or a module at its root, owns only itself.
    levels = (module or "").count(".")
    folder = f"{path.parents[max(levels - 1, 0)]}{os.sep}"
    return (str(path),) if folder in libraries else (folder,)


def _with_separator(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({f"{Path(folder).absolute()}{os.sep}" for folder in folders}))


class TraceNames:
    """File names as Python rows of a trace have them: without the longest entry of the module path in front.

    Source: ``torch.profiler.python_tracer._prefix_regex``, which the profiler asks when it stops.
    """

    def __init__(self) -> None:
        from torch.profiler.python_tracer import _prefix_regex

        self._prefixes = _prefix_regex()
        self._known: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        """The name for a ``co_filename``."""
        known = self._known.get(path)
        if known is None:
            prefix = next((prefix for prefix in self._prefixes if path.startswith(prefix)), "")
            known = self._known[path] = path[len(prefix) :]
        return known
