"""Start-up hook of a job that slipstream runs. Python imports it before the job's own first line.

It knows no torch and imports nothing but the standard library's bare minimum: it waits for ``import torch``, wherever
and whenever that happens, and then loads what the job's specification names. A process that never imports torch is
left alone. Another ``sitecustomize`` that lies behind it on the path runs as usual.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - every process pays for an import of pathlib


class _AfterTorch:
    """Finder that steps aside for ``import torch`` and acts when the module has been executed."""

    def __init__(self, job: str) -> None:
        self._job = job

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        if name != "torch" or path is not None:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        loader: Any = getattr(spec, "loader", None)
        if loader is None:
            sys.meta_path.insert(0, self)
            return spec
        execute = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            _install(self._job)

        loader.exec_module = exec_module
        return spec


def _install(job: str) -> None:
    try:
        from slipstream.capture.parts import install_parts

        install_parts(job)
    except Exception as error:
        # Never the job's problem: it runs without being recorded, and says so once.
        print(f"slipstream: this process is not recorded: {error!r}", file=sys.stderr)


def _die_with(launcher: int) -> None:
    """Have the kernel kill this process should the launcher be killed: nobody could end the job any more."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != launcher:
        os.kill(os.getpid(), signal.SIGKILL)


def _chain() -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != HERE]  # noqa: PTH100 - see above
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if sys.platform == "linux" and os.environ.get("SLIPSTREAM_LAUNCHER") == str(os.getppid()):
    _die_with(os.getppid())
if os.environ.get("SLIPSTREAM_JOB"):
    sys.meta_path.insert(0, _AfterTorch(os.environ["SLIPSTREAM_JOB"]))
_chain()
