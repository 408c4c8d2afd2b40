"""Names of ops and kernels, cut to what tells them apart."""

import re

_QUALIFIERS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\{lambda[^}]*\}|\bconst\b|\bvoid\b|\[clone [^\]]*\]")
_FUNCTOR = re.compile(r"\w*(?:Functor|functor|_op|Op|_kernel_impl|Softmax|Reduce)\w*")


def short_name(name: str, width: int = 60) -> str:
    """A name without return type, namespaces, arguments and most template parameters.

    Of the template parameters the one that says what is computed stays: the functor of an elementwise or
    reduction kernel, for all of those share one function name.

    Args:
        name: as it stands in a trace.
        width: most characters of the result, at least 8; the middle is left out of what is longer.
    """
    text = _QUALIFIERS.sub("", " ".join(name.split())).strip()
    head, inner = _split_template(text)
    if inner is not None:
        functor = _FUNCTOR.search(inner)
        head = f"{_last_part(head)}<{functor.group() if functor else '…'}>"
    elif "::" in head and "(" in head:
        head = _last_part(head.split("(", 1)[0])
    return _fit(head or name, width)


def _split_template(text: str) -> tuple[str, str | None]:
    """What stands before the first template list, and that list; None when the name has none."""
    opened = text.find("<")
    # "a->b", "x<y" inside a label and a bracket at the start are no template lists.
    if opened <= 0 or not (text[opened - 1].isalnum() or text[opened - 1] == "_") or ">" not in text[opened:]:
        return text, None
    return text[:opened], text[opened + 1 :]


def _last_part(qualified: str) -> str:
    """The last name of a C++ path; paths of torch operators (``aten::mm``) are one level deep and stay."""
    parts = qualified.split("::")
    return parts[-1] if len(parts) > 2 or " " in qualified else qualified


def _fit(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return text[: width - 1 - tail] + "…" + text[-tail:]
