"""Reads one element that is no sound JSON, and says what had to be repaired.

Seen in real files: Windows paths with single backslashes, raw quotes inside names, control bytes, bytes that are
not UTF-8, bare ``inf`` and ``nan``, keys that lost their opening quote, values without quotes.
"""

import re
from typing import Any

import msgspec

from slipstream.ingest.ledger import Ledger, plural

ELEMENT_KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "s", "bp", "tts", "sf", "cname")
_NEXT_ELEMENT_KEY = re.compile(r'\s*(?:,\s*"?(?:' + "|".join(ELEMENT_KEYS) + r')"\s*:|\}\s*$)')
_NEXT_ARGUMENT = re.compile(r'\s*(?:,\s*(?:"[^"\\]{1,80}"|[A-Za-z_][\w .]{0,80}")\s*:|\}\s*(?:[\]},]|$))')
_NEXT_ITEM = re.compile(r"\s*[,\]]")
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:|([A-Za-z_][^":,{}\[\]]{0,80}?)"?\s*:')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?=\s*[,}\]])")
_NOT_FINITE = re.compile(r"[-+]?(?:inf(?:inity)?|nan(?:\([^)]*\))?)(?=\s*[,}\]])", re.IGNORECASE)
_WORD = re.compile(r"(true|false|null)(?=\s*[,}\]])")
_SPACE = re.compile(r"\s*")
_GOOD_ESCAPES = re.compile(r'(?:[^\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*', re.DOTALL)
_SINGLE_BACKSLASH = re.compile(r"(?<!\\)\\[bfnrtu]")
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LITERAL = {"true": True, "false": False, "null": None}
_ANOTHER_ELEMENT = re.compile(r'"ph"\s*:')
"""Inside what looks like a text: two elements have run into each other."""
_DEPTH = 64
LONGEST_ELEMENT = 1 << 18
"""Broken elements of more bytes than this are dropped: none so long was ever seen, and trying takes time."""

ILLEGAL_ESCAPES = "illegal_escapes"
INVALID_UTF8 = "invalid_utf8"
CONTROL_CHARACTERS = "control_characters"
NOT_FINITE = "not_finite_numbers"
RAW_QUOTES = "raw_quotes"
BROKEN_KEYS = "broken_keys"
MISSING_QUOTES = "missing_quotes"

REPAIRS = {
    ILLEGAL_ESCAPES: "with illegal escapes, such as a path with single backslashes: read literally",
    INVALID_UTF8: "with bytes that are not UTF-8: replaced by U+FFFD",
    CONTROL_CHARACTERS: "with control characters in a text: kept",
    NOT_FINITE: "with inf or nan for a number: read as missing",
    RAW_QUOTES: "with quotes inside a text that were not escaped: read up to the next key",
    BROKEN_KEYS: "with a key that lost a quote: read nevertheless",
    MISSING_QUOTES: "with a text without quotes: read up to the next key",
}
"""What was the matter with an event, as the end of a sentence that begins with how many there are."""


class _Unreadable(Exception):
    """Nothing that makes sense at this place."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.repairs: set[str] = set()

    def element(self) -> dict[str, Any]:
        at = self._space(0)
        if not self.text.startswith("{", at):
            raise _Unreadable
        found, end = self._object(at, 0)
        if self._space(end) != len(self.text):
            raise _Unreadable
        return found

    def _space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        if depth > _DEPTH:
            raise _Unreadable
        found: dict[str, Any] = {}
        at = self._space(at + 1)
        while not self.text.startswith("}", at):
            key = _KEY.match(self.text, at)
            if key is None:
                raise _Unreadable
            name = key[1] if key[1] is not None else key[2]
            if key[1] is None:
                self.repairs.add(BROKEN_KEYS)
            found[name], at = self._value(self._space(key.end()), depth)
            at = self._space(at)
            if self.text.startswith(",", at):
                at = self._space(at + 1)
            elif not self.text.startswith("}", at):
                raise _Unreadable
        return found, at + 1

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._space(at + 1)
        while not self.text.startswith("]", at):
            value, at = self._value(at, depth, in_array=True)
            found.append(value)
            at = self._space(at)
            if self.text.startswith(",", at):
                at = self._space(at + 1)
            elif not self.text.startswith("]", at):
                raise _Unreadable
        return found, at + 1

    def _value(self, at: int, depth: int, in_array: bool = False) -> tuple[Any, int]:
        first = self.text[at : at + 1]
        if first == '"':
            return self._string(at, depth, in_array)
        if first == "{":
            return self._object(at, depth + 1)
        if first == "[":
            if depth > _DEPTH:
                raise _Unreadable
            return self._array(at, depth + 1)
        if match := _NUMBER.match(self.text, at):
            return msgspec.Raw(match[0].encode()), match.end()
        if match := _WORD.match(self.text, at):
            return _LITERAL[match[1]], match.end()
        if match := _NOT_FINITE.match(self.text, at):
            self.repairs.add(NOT_FINITE)
            return None, match.end()
        return self._bare(at, depth, in_array)

    def _ending(self, depth: int, in_array: bool) -> re.Pattern[str]:
        if in_array:
            return _NEXT_ITEM
        return _NEXT_ELEMENT_KEY if depth == 0 else _NEXT_ARGUMENT

    def _string(self, at: int, depth: int, in_array: bool) -> tuple[str, int]:
        """The string that starts at a quote: it ends at the quote after which the next key (or the end) comes."""
        ending = self._ending(depth, in_array)
        quote = at
        passed = 0
        while (quote := self.text.find('"', quote + 1)) >= 0:
            follows = ending.match(self.text, quote + 1) is not None
            escaped = self._escaped(quote)
            if follows and (not escaped or depth == 0):
                if passed:
                    if _ANOTHER_ELEMENT.search(self.text, at, quote):
                        raise _Unreadable
                    self.repairs.add(RAW_QUOTES)
                return self._unescaped(self.text[at + 1 : quote]), quote + 1
            passed += not escaped
        raise _Unreadable

    def _escaped(self, quote: int) -> bool:
        first = quote
        while self.text.startswith("\\", first - 1):
            first -= 1
        return (quote - first) % 2 == 1

    def _bare(self, at: int, depth: int, in_array: bool) -> tuple[str, int]:
        ending = self._ending(depth, in_array)
        end = at
        while end < len(self.text) and not ending.match(self.text, end):
            end += 1
        if end >= len(self.text) or end == at:
            raise _Unreadable
        self.repairs.add(MISSING_QUOTES)
        return self._unescaped(self.text[at:end].rstrip()), end

    def _unescaped(self, raw: str) -> str:
        if _CONTROL.search(raw):
            self.repairs.add(CONTROL_CHARACTERS)
        if "\\" not in raw:
            return raw
        good = _GOOD_ESCAPES.fullmatch(raw)
        if good is None or _SINGLE_BACKSLASH.search(raw, 0, max(0, raw.rfind(".py"))):
            # A path written as it is: every backslash is meant literally, save one before a quote.
            self.repairs.add(ILLEGAL_ESCAPES)
            return raw.replace('\\"', '"')
        return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or _code(match[1]), raw)


def _code(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else escape


def repaired(element: bytes) -> tuple[bytes, frozenset[str]] | None:
    """Make sound JSON of one broken element.

    Args:
        element: its bytes, from the opening to the closing brace.
    Returns:
        Sound JSON and the codes of what was repaired; None when nothing sensible can be made of it.
    """
    repairs: set[str] = set()
    if len(element) > LONGEST_ELEMENT:
        return None
    try:
        text = element.decode()
    except UnicodeDecodeError:
        text = element.decode(errors="replace")
        repairs.add(INVALID_UTF8)
    reader = _Reader(text)
    try:
        found = reader.element()
    except (_Unreadable, RecursionError):
        return None
    encoded = msgspec.json.encode(_without_surrogates(found, repairs))
    return encoded, frozenset(repairs | reader.repairs)


def _without_surrogates(value: Any, repairs: set[str]) -> Any:
    if isinstance(value, str):
        if _SURROGATE.search(value):
            repairs.add(INVALID_UTF8)
            return _SURROGATE.sub("\ufffd", value)
        return value
    if isinstance(value, dict):
        return {_without_surrogates(key, repairs): _without_surrogates(item, repairs) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item, repairs) for item in value]
    return value


def note_repair(code: str, ledger: Ledger, count: int = 1) -> None:
    """Count events that were repaired."""
    ledger.note(code, count, lambda total: f"{plural(total, 'event')} {REPAIRS[code]}.")


def literal_path(name: str) -> str:
    """A path that legal escapes have made silently wrong: control characters become what was written again.

    ``torch\\nn\\tensor.py`` is legal JSON, but reads as a line feed and a tab.
    """
    if ".py" not in name or not _CONTROL.search(name):
        return name
    for letter, character in _ESCAPED.items():
        name = name.replace(character, "\\" + letter)
    return name
