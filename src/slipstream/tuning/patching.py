"""A treatment, written into the source: edits of the syntax tree that keep comments and layout, as a unified diff."""

import difflib
from collections.abc import Sequence
from pathlib import Path

import libcst as cst
import msgspec
from libcst.metadata import MetadataWrapper, QualifiedNameProvider

from slipstream.model import BadInput
from slipstream.tuning.edits import Edit, Keyword, Lines, NoKeyword


class Patched(msgspec.Struct, frozen=True, kw_only=True):
    """A source with its edits."""

    source: str
    made: tuple[int, ...]
    """Of each edit, in how many places it was made."""


def patched(source: str, edits: Sequence[Edit]) -> Patched:
    """A source with edits.

    Args:
        source: Python.
        edits: carried out one after the other.
    Raises:
        BadInput: it cannot be parsed.
    """
    made = []
    for edit in edits:
        try:
            wrapper = MetadataWrapper(cst.parse_module(source))
        except cst.ParserSyntaxError as error:
            raise BadInput(f"the source cannot be parsed: {error.message}, line {error.raw_line}") from error
        editor = _EDITORS[type(edit)](edit)
        source = wrapper.visit(editor).code
        made.append(editor.made)
    return Patched(source=source, made=tuple(made))


def diff_of(path: Path, before: str, after: str, root: Path) -> str:
    """A unified diff that ``git apply`` and ``patch -p1`` take, empty where nothing changes.

    Args:
        path: of the file.
        before: its text.
        after: its text with edits.
        root: where the diff is to be applied; a file elsewhere is named in full.
    """
    full = path.resolve()
    name = full.relative_to(root.resolve()).as_posix() if full.is_relative_to(root.resolve()) else full.as_posix()
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    diff = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)


class _Editor(cst.CSTTransformer):
    """One edit, carried out wherever it fits."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def names(self, node: cst.CSTNode) -> set[str]:
        """What a name stands for, by the imports of the module."""
        return {one.name for one in self.get_metadata(QualifiedNameProvider, node, set())}

    def calls(self, node: cst.Call, package: str, last: Sequence[str]) -> bool:
        """Whether something of a package with one of these names is called."""
        found = (name.split(".") for name in self.names(node.func))
        return any(parts[0] == package and parts[-1] in last for parts in found)


class _AddKeyword(_Editor):
    def __init__(self, edit: Keyword) -> None:
        super().__init__()
        self._edit = edit

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802 - libcst's name
        edit = self._edit
        given = {arg.keyword.value: arg.value for arg in original_node.args if arg.keyword is not None}
        if (
            not self.calls(original_node, edit.package, edit.calls)
            or any(arg.star for arg in original_node.args)  # what is in there cannot be seen
            or any(name in given for name in (*edit.keywords, *edit.unless))
            or not all(name in given and _code(given[name]) != value for name, value in edit.where.items())
        ):
            return updated_node
        self.made += 1
        for name, code in edit.keywords.items():
            updated_node = _with_argument(updated_node, name, code)
        return updated_node


class _TakeKeyword(_Editor):
    def __init__(self, edit: NoKeyword) -> None:
        super().__init__()
        self._edit = edit

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802 - libcst's name
        func = updated_node.func
        if not isinstance(func, cst.Attribute) or func.attr.value != self._edit.method:
            return updated_node
        left = [arg for arg in updated_node.args if arg.keyword is None or arg.keyword.value != self._edit.keyword]
        if len(left) == len(updated_node.args):
            return updated_node
        self.made += 1
        if left:
            left[-1] = left[-1].with_changes(comma=updated_node.args[-1].comma)
        return updated_node.with_changes(args=left)


class _AddLines(_Editor):
    def __init__(self, edit: Lines) -> None:
        super().__init__()
        self._edit = edit

    def leave_SimpleStatementLine(  # noqa: N802 - libcst's name
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        if self._edit.place != "before_optimizer" or self.made:
            return updated_node
        model = self._model_of(original_node)
        if model is None:
            return updated_node
        self.made += 1
        return cst.FlattenSentinel([*_statements(self._edit.code.replace("{model}", model)), updated_node])

    def leave_Module(  # noqa: N802 - libcst's name
        self, original_node: cst.Module, updated_node: cst.Module
    ) -> cst.Module:
        wanted = [] if self._edit.place == "before_optimizer" else [*_statements(self._edit.code)]
        if self._edit.place == "before_optimizer" and not self.made:
            return updated_node
        have = {alias for statement in original_node.body for alias in _imported(statement)}
        missing = [*_statements("".join(f"import {name}\n" for name in self._edit.modules if name not in have))]
        if not wanted and not missing:
            return updated_node
        body = [*updated_node.body]
        end = _end_of_imports(body)
        first = len(missing) if missing else 0
        new = [*missing, *wanted]
        if wanted:
            new[first] = new[first].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        self.made = max(self.made, 1)
        return updated_node.with_changes(body=[*body[:end], *new, *body[end:]])

    def _model_of(self, statement: cst.SimpleStatementLine) -> str | None:
        """What an optimizer that this statement makes gets its parameters from."""
        finder = _Optimizers(self)
        statement.visit(finder)
        return finder.model


class _Optimizers(cst.CSTVisitor):
    def __init__(self, editor: _Editor) -> None:
        super().__init__()
        self._editor = editor
        self.model: str | None = None

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802 - libcst's name
        names = self._editor.names(node.func)
        if not any(name.startswith("torch.optim.") and "lr_scheduler" not in name for name in names) or not node.args:
            return
        given = node.args[0].value
        if (
            isinstance(given, cst.Call)
            and isinstance(given.func, cst.Attribute)
            and given.func.attr.value == "parameters"
        ):
            self.model = _code(given.func.value)


_EDITORS = {Keyword: _AddKeyword, NoKeyword: _TakeKeyword, Lines: _AddLines}


def _code(node: cst.CSTNode) -> str:
    return cst.Module(body=[]).code_for_node(node)


def _statements(code: str) -> list[cst.BaseStatement]:
    return [*cst.parse_module(code).body]


def _with_argument(call: cst.Call, name: str, code: str) -> cst.Call:
    """A call with a keyword more, laid out as its other arguments are."""
    new = cst.Arg(
        keyword=cst.Name(name),
        value=cst.parse_expression(code),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if not call.args:
        return call.with_changes(args=[new])
    *before, last = call.args
    between = before[-1].comma if before else cst.MaybeSentinel.DEFAULT
    trailing = isinstance(last.comma, cst.Comma)
    end = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    if isinstance(end, cst.ParenthesizedWhitespace):  # one argument a line: a comment stays with its own
        bare = end.with_changes(first_line=cst.TrailingWhitespace(newline=end.first_line.newline), empty_lines=[])
        indent = between.whitespace_after if isinstance(between, cst.Comma) else None
        if isinstance(indent, cst.ParenthesizedWhitespace):
            end = end.with_changes(indent=indent.indent, last_line=indent.last_line)
        between = cst.Comma(whitespace_after=end)
        new = new.with_changes(
            comma=cst.Comma(whitespace_after=bare) if trailing else cst.MaybeSentinel.DEFAULT,
            whitespace_after_arg=cst.SimpleWhitespace("") if trailing else bare,
        )
    else:
        new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        if isinstance(between, cst.MaybeSentinel):
            between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*before, last, new])


def _imported(statement: cst.CSTNode) -> list[str]:
    """Names that a statement ``import ...`` binds."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return []
    return [
        _code(alias.asname.name) if alias.asname is not None else _code(alias.name).partition(".")[0]
        for one in statement.body
        if isinstance(one, cst.Import)
        for alias in one.names
    ]


def _end_of_imports(body: Sequence[cst.CSTNode]) -> int:
    """Where the first statement stands that is neither the docstring nor an import."""
    end = 0
    for number, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        if all(isinstance(one, (cst.Import, cst.ImportFrom)) for one in statement.body):
            end = number + 1
        elif not (
            number == 0
            and isinstance(statement.body[0], cst.Expr)
            and isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
        ):
            break
        else:
            end = 1
    return end
