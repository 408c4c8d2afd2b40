"""Another library hands out the host's memory."""

from pathlib import Path
from typing import ClassVar

from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class MemoryAllocator(Treatment):
    """Preloads an allocator that is faster than the C library's where tensors come and go.

    The setting ``library`` is ``tcmalloc``, ``jemalloc`` or ``mimalloc``; it has to be installed. Pays for training
    on the CPU, whose tensors are allocated anew in every step.
    """

    title = "memory allocator"
    fix_class = "exact"
    defaults: ClassVar = {"library": "tcmalloc"}

    def applies_to(self, environment: Environment) -> str | None:
        """On Linux, for work on the CPU, where the library is installed."""
        library = str(self.settings["library"])
        if environment.platform != "linux":
            return f"libraries are preloaded on Linux only, and this is {environment.platform}"
        if environment.device_kind != "cpu":
            return "the device's memory is not handed out by the C library"
        if library not in environment.libraries:
            return f"{library} is not installed (Debian: apt-get install {_PACKAGES.get(library, library)})"
        if library in environment.variables.get("LD_PRELOAD", ""):
            return f"{library} is preloaded already"
        return None

    def variables(self, environment: Environment) -> dict[str, str]:
        """The dynamic linker's."""
        before = environment.variables.get("LD_PRELOAD")
        path = environment.libraries[str(self.settings["library"])]
        return {"LD_PRELOAD": f"{path}:{before}" if before else path}

    def proof(self) -> Proof:
        """Whether the process has it in memory."""
        library = str(self.settings["library"])
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if library in line}
        found = ", ".join(sorted(mapped))
        return Proof(
            applied=bool(mapped),
            evidence=f"{found} is mapped" if found else f"no library named {library} is mapped",
        )

    def permanent(self) -> Permanent:
        """A variable."""
        library = str(self.settings["library"])
        return Permanent(
            summary=f"preload {library}", variables={"LD_PRELOAD": f"lib{_FILES.get(library, library)}.so"}
        )


_PACKAGES = {"tcmalloc": "libtcmalloc-minimal4", "jemalloc": "libjemalloc2", "mimalloc": "libmimalloc3"}
_FILES = {"tcmalloc": "tcmalloc_minimal"}
