"""Line numbers inside a statement -> the line on which the statement begins."""

import ast
from pathlib import Path

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class StatementLines:
    """Maps lines of files to the first line of their statement; files that cannot be read map to themselves."""

    def __init__(self) -> None:
        self._files: dict[str, dict[int, int]] = {}

    def first(self, path: str, line: int) -> int:
        """First line of the statement that a line belongs to.

        Args:
            path: the source file.
            line: a line of it.
        Returns:
            For a compound statement (for, with, if, ...) only its head counts as the statement; ``line`` itself
            where nothing is known.
        """
        if path not in self._files:
            self._files[path] = _statements(path)
        return self._files[path].get(line, line)


def _statements(path: str) -> dict[int, int]:
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[int, int] = {}
    # ast.walk goes from the outside in, so that inner statements overwrite the lines of outer ones.
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            inner = [child.lineno for name in _BLOCKS for child in getattr(node, name, ()) if hasattr(child, "lineno")]
            last = min(inner) - 1 if inner else (node.end_lineno or node.lineno)
            found.update(dict.fromkeys(range(node.lineno, max(last, node.lineno) + 1), node.lineno))
    return found
