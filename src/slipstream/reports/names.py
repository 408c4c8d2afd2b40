"""Names of ops and kernels, cut to what tells them apart."""

import re

_NOISE = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\bconst\b|\[clone [^\]]*\]")
_SIGNATURE = re.compile(r"^(.*?\w)\(.*\)$")
"""A name that ends in its arguments: ``kernel(int, float*)``, but not ``Memcpy HtoD (Pageable -> Device)``."""
_TELLING = re.compile(r"cutlass_\w+|\w*(?:Functor|functor|_op|Op|_kernel_impl|gemm|xmma|Softmax|Reduce)\w*")
"""Of template parameters, the one that says what is computed."""
_GENERIC = frozenset({"kernel", "Kernel", "Kernel2", "device_kernel", "kernel_entry", "type"})
"""Function names that all kernels of a library share."""


def short_name(name: str, width: int = 60) -> str:
    """A name without return type, namespaces, arguments and most template parameters.

    Of the template parameters the one that says what is computed stays: the functor of an elementwise or
    reduction kernel, the tile of a matrix product, for all of those share one function name.

    Args:
        name: as it stands in a trace.
        width: most characters of the result, at least 8; the middle is left out of what is longer.
    """
    text = _NOISE.sub("", " ".join(name.split())).strip()
    outside, inside = _split_templates(text)
    signature = _SIGNATURE.match(outside)
    if inside is None and (signature is None or "#" in text):
        return shortened(text or name, width)
    function = (signature.group(1) if signature else outside).split(" ")[-1]
    parts = function.split("::")
    last = "::".join(parts[-2:]) if parts[-1] in _GENERIC else parts[-1]
    if inside is None:
        return shortened(last or name, width)
    telling = _TELLING.search(inside)
    if telling is not None and parts[-1] in _GENERIC:
        return shortened(telling.group(), width)
    return shortened(f"{last}<{telling.group() if telling else '…'}>", width)


def _split_templates(text: str) -> tuple[str, str | None]:
    """What stands outside of all template lists, and the list of the function itself (the last before its
    arguments); None when there is none.
    """
    outside: list[str] = []
    last: list[str] = []
    depth = 0
    found: str | None = None
    for place, character in enumerate(text):
        # "a->b", "x < y" and a bracket at the start are no template lists.
        if character == "<" and (depth or (place and (text[place - 1].isalnum() or text[place - 1] == "_"))):
            depth += 1
        elif character == ">" and depth and text[place - 1] != "-":
            depth -= 1
            if not depth:
                # Lists within the arguments say nothing of the function.
                found = "".join(last) if found is None or "(" not in "".join(outside) else found
                last = []
                continue
        if depth:
            last.append(character)
        else:
            outside.append(character)
    return (text, None) if depth or found is None else ("".join(outside), found)


def short_file(file: str, width: int = 28) -> str:
    """A path cut to its last part where it is longer than ``width`` characters."""
    last = last_part(file)
    return file if len(file) <= width or last == file else f"…/{last}"


def last_part(path: str) -> str:
    """The name at the end of a path or address."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def shortened(text: str, width: int) -> str:
    """A text of at most ``width`` characters; of a longer one the middle is left out."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return text[: width - 1 - tail] + "…" + text[-tail:]
