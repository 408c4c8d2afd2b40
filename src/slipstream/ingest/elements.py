"""Cuts the text of a trace into its top-level values and batches of sound elements of ``traceEvents``.

The fast path never looks at single bytes: the separator between the first two elements is learnt, and the text
is cut at its first occurrence after every few hundred kilobytes. That it is a real boundary shows in that the
batch decodes. Only a batch that does not is taken apart element by element.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw

from slipstream.ingest.ledger import Ledger, plural
from slipstream.ingest.records import Event, KnownEvent
from slipstream.ingest.repair import ELEMENT_KEYS, note_repair, repaired

BATCH_BYTES = 128 * 1024
"""Elements of one batch are gone through several times; of this size they stay in the processor's cache."""
LEARN_BYTES = 1024 * 1024
STUCK_BYTES = 64 * 1024 * 1024
"""Where the learnt separator does not occur in that many bytes, any will do; without one, they are dropped."""
LONGEST_SEPARATOR = 256
LONGEST_HEADER = 256 * 1024 * 1024
LONGEST_TAIL = 64 * 1024 * 1024
JOINED_PARTS = 64
TRIED_PARTS = 4
UNFINISHED_BYTES = 256 * 1024

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_AFTER_KEY = re.compile(rb"\s*:\s*(\[|[^\s\[])")
_SEPARATOR = re.compile(rb"\}(\s*,\s*)\{")
_SPLIT = re.compile(rb"\}(\s*,\s*)(?=\{)")
_AFTER_END = rb'\s*(?:,\s*"(?!(?:' + "|".join(ELEMENT_KEYS).encode() + rb')")|\}|$)'
"""What follows the array: a key that no element has, the end of the document or of the file."""
_END = re.compile(rb"\s*,?\s*\]" + _AFTER_END)
_END_AFTER_OBJECT = re.compile(rb"\}\s*,?\s*(\])" + _AFTER_END)
_DOCUMENT = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST = msgspec.json.Decoder(list[Event])
_KNOWN = msgspec.json.Decoder(list[KnownEvent])
_RAWS = msgspec.json.Decoder(list[Raw])
_EVENT = msgspec.json.Decoder(Event)
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_FIELDS = {part.encode_name: msgspec.json.Decoder(part.type) for part in msgspec.structs.fields(Event)}
_BROKEN = (msgspec.DecodeError, RecursionError)


class Batch(msgspec.Struct):
    """Some consecutive elements that are sound JSON."""

    text: bytes
    """The elements, separated by commas."""
    events: list[Event]
    positions: Sequence[int]
    """Position of each in ``traceEvents``."""


class Document:
    """The text of one trace file; iterate over ``batches`` first, then ask for the rest.

    Args:
        pieces: the decompressed bytes in order.
        ledger: counts what had to be repaired.
    """

    def __init__(self, pieces: Iterator[bytes], ledger: Ledger) -> None:
        self._pieces = pieces
        self._ledger = ledger
        self.header = b""
        """Text before the elements, up to and including the opening bracket."""
        self.tail = b""
        """Text after them, from the closing bracket on."""
        self.elements = 0
        """Elements seen, readable or not."""
        self.total_bytes = 0
        self.found_array = False
        self.closed = False
        """Whether the array came to its end."""
        self.second_document = False
        """Whether the beginning of another trace lies among the elements or after them."""
        self.lost_bytes = 0
        """Bytes of the element that the end of the file cut."""
        self.dropped = 0
        """Elements that could not be read, other than the one at a cut."""
        self._all_known = True
        """Whether all phases and categories so far are well-known words."""
        self._skipping = False
        """Whether the middle of an element lies ahead whose beginning was dropped for its size."""
        self._unfinished = b""
        """End of a batch that was cut inside an element: it belongs to the next one."""
        self.start = b""
        """The first bytes, for telling what a file is that is no trace."""

    def batches(self) -> Iterator[Batch]:
        """The elements in order."""
        buffer = self._find_array()
        if not self.found_array:
            return
        separator: bytes | None = None
        while (piece := self._next()) is not None:
            buffer = self._after_skipped(buffer + piece)
            if len(buffer) < BATCH_BYTES:
                continue
            separator = separator or _learn(buffer)
            at = 0
            while not self.closed and (boundary := _boundary(buffer, at, separator)):
                text = self._unfinished + buffer[at : boundary[0]]
                at = boundary[1]
                self._unfinished = b""
                yield from self._batch(text, at_end=False)
            buffer = buffer[at:]
            if self.closed:
                self._finish(b"," + buffer)
                return
            if len(buffer) > STUCK_BYTES:
                self._drop(buffer, cut_by_end=False)
                self._skipping = True
        text = self._unfinished + (b"" if self._skipping else buffer)
        if text.strip():
            yield from self._batch(text, at_end=True)
        self._finish(b"")

    def _after_skipped(self, buffer: bytes) -> bytes:
        """The text without the rest of an element that was given up for its size."""
        if not self._skipping:
            return buffer
        match = _SEPARATOR.search(buffer)
        if match is None:
            return buffer[-LONGEST_SEPARATOR:]
        self._skipping = False
        return buffer[match.end() - 1 :]

    def _next(self) -> bytes | None:
        piece = next(self._pieces, None)
        if piece is not None:
            self.total_bytes += len(piece)
        return piece

    def _find_array(self) -> bytes:
        """Read up to the array of elements; what was read beyond is returned."""
        buffer = b""
        at = depth = 0
        while len(buffer) < LONGEST_HEADER and (piece := self._next()) is not None:
            buffer += piece
            if not self.start:
                buffer = buffer.removeprefix(b"\xef\xbb\xbf").lstrip()
                self.start = buffer[:64]
                if buffer[:1] == b"[":
                    self.found_array = True
                    self.header = b"["
                    return buffer[1:]
                if buffer[:1] != b"{":
                    return b""
            at, depth, found = _scan(buffer, at, depth)
            if found:
                self.found_array = True
                self.header = buffer[:at]
                return buffer[at:]
        match = _DOCUMENT.search(buffer)
        if match and b"{" in buffer[match.end() :]:
            self._ledger.note("damaged_header", 1, "The values before the events are damaged.")
            self.found_array = True
            self.header = buffer[: match.end()]
            self.second_document = self.header.count(b'"schemaVersion"') > 1
            return buffer[match.end() :]
        return b""

    def _finish(self, rest: bytes) -> None:
        parts = [self.tail, rest]
        size = len(rest)
        while (piece := self._next()) is not None:
            size += len(piece)
            if size < LONGEST_TAIL:
                parts.append(piece)
        self.tail = b"".join(parts)
        self.second_document = self.second_document or _DOCUMENT.search(self.tail) is not None

    def _batch(self, text: bytes, at_end: bool) -> Iterator[Batch]:
        try:
            yield self._numbered(text, self._decoded(text))
            return
        except _BROKEN:
            end = _end_of_array(text)
        if end is not None:
            self.closed = True
            self.tail = text[end:]
            text = text[:end].rstrip().rstrip(b",")
            try:
                yield self._numbered(text, self._decoded(text))
                return
            except _BROKEN:
                at_end = False
        yield from self._careful(text, at_end)

    def _decoded(self, text: bytes) -> list[Event]:
        if self._all_known:
            try:
                known: list[Any] = _KNOWN.decode(b"[" + text + b"]")
                return known
            except msgspec.ValidationError:
                self._all_known = False
        return _LIST.decode(b"[" + text + b"]")

    def _numbered(self, text: bytes, events: list[Event]) -> Batch:
        first = self.elements
        self.elements += len(events)
        return Batch(text=text, events=events, positions=range(first, self.elements))

    def _careful(self, text: bytes, at_end: bool) -> Iterator[Batch]:
        """Element by element: what is sound, what can be repaired, what must be dropped."""
        sound: list[bytes] = []
        positions: list[int] = []

        def keep(elements: list[bytes]) -> None:
            sound.extend(elements)
            positions.extend(range(self.elements, self.elements + len(elements)))
            self.elements += len(elements)

        parts = [(0, len(text))] if _decodes(_RAWS, b"[" + text + b"]") else _parts(text)
        number = 0
        while number < len(parts):
            part = text[parts[number][0] : parts[number][1]].strip().strip(b",").strip()
            last = number == len(parts) - 1
            number += 1
            if (elements := self._elements(part)) is not None:
                keep(elements)
                continue
            if (ended := self._end_within(part)) is not None:
                elements, offset = ended
                keep(elements)
                self.closed = True
                self.tail = text[text.index(part[offset:], parts[number - 1][0]) :]
                break
            joined = self._joined(text, parts, number - 1)
            if joined is not None:
                elements, number = joined
                keep(elements)
                continue
            rest = text[parts[number - 1][0] :]
            if not at_end and len(rest) < UNFINISHED_BYTES and rest.count(b"{") > rest.count(b"}"):
                self._unfinished = rest + b","
                break
            self._drop(part, last and at_end)
        if sound:
            whole = b",".join(sound)
            yield Batch(text=whole, events=_LIST.decode(b"[" + whole + b"]"), positions=positions)

    def _drop(self, part: bytes, cut_by_end: bool) -> None:
        if not part:
            return
        self.elements += 1
        if cut_by_end:
            self.lost_bytes = len(part)
        else:
            self.dropped += 1

    def _elements(self, part: bytes, repair: bool = True) -> list[bytes] | None:
        """The elements in a text, each sound by itself; None when it is not a list of elements."""
        try:
            raws = [bytes(raw) for raw in _RAWS.decode(b"[" + part + b"]")]
        except _BROKEN:
            self.second_document = self.second_document or _DOCUMENT.search(part) is not None
            fixed = repaired(part) if repair else None
            if fixed is None:
                return None
            for code in fixed[1]:
                note_repair(code, self._ledger)
            raws = [fixed[0]]
        odd = sum(not raw.startswith((b"{", b"null")) for raw in raws)
        self._note_odd(odd)
        return [self._typed(raw) if raw.startswith(b"{") else b"{}" for raw in raws]

    def _note_odd(self, count: int) -> None:
        self._ledger.note(
            "odd_values",
            count,
            lambda total: f"{plural(total, 'element')} with values of an impossible type: left out.",
        )

    def _typed(self, raw: bytes) -> bytes:
        """An element without those of its values that have no possible type."""
        if _decodes(_EVENT, raw):
            return raw
        fixed = repaired(raw)
        if fixed is not None and fixed[1]:
            for code in fixed[1]:
                note_repair(code, self._ledger)
            raw = fixed[0]
            if _decodes(_EVENT, raw):
                return raw
        try:
            values = _OBJECT.decode(raw)
        except _BROKEN:
            values = {}
        self._note_odd(1)
        kept = {key: value for key, value in values.items() if key in _FIELDS and _decodes(_FIELDS[key], value)}
        return msgspec.json.encode(kept)

    def _end_within(self, part: bytes) -> tuple[list[bytes], int] | None:
        """Elements before the end of the array inside a text, and where its closing bracket is."""
        for count, match in enumerate(_END.finditer(part)):
            before = part[: match.start()].strip()
            if count > JOINED_PARTS:
                return None
            elements = self._elements(before, repair=before.endswith(b"}"))
            if elements is not None:
                return elements, part.index(b"]", match.start())
        return None

    def _joined(self, text: bytes, parts: list[tuple[int, int]], first: int) -> tuple[list[bytes], int] | None:
        """An element that holds objects in a list and was therefore cut into several parts."""
        start = parts[first][0]
        for last in range(first + 1, min(first + JOINED_PARTS, len(parts))):
            whole = text[start : parts[last][1]]
            # Braces inside texts make the counts unreliable, hence a few attempts in any case.
            if last - first <= TRIED_PARTS or whole.count(b"{") == whole.count(b"}"):
                elements = self._elements(whole)
                if elements is not None:
                    return elements, last + 1
        return None


def _scan(text: bytes, at: int, depth: int) -> tuple[int, int, bool]:
    """Go on looking for the array of elements among the top-level keys.

    Returns:
        Where to go on (or where the array begins), how deep that is, and whether the array was found.
    """
    for token in _TOKEN.finditer(text, at):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case b'"traceEvents"' if depth == 1:
                after = _AFTER_KEY.match(text, token.end())
                if after is None and len(text) - token.end() < 64:
                    return token.start(), depth, False
                if after is not None and after[1] == b"[":
                    return after.end(), depth, True
        at = token.end()
    return at, depth, False


def _decodes(decoder: msgspec.json.Decoder[Any], raw: bytes | Raw) -> bool:
    try:
        decoder.decode(raw)
    except _BROKEN:
        return False
    return True


def _learn(text: bytes) -> bytes:
    """What stands between two elements of this file."""
    for match in _SEPARATOR.finditer(text[:LEARN_BYTES]):
        try:
            _LIST.decode(b"[" + text[: match.start() + 1] + b"]")
        except _BROKEN:
            continue
        return match[1]
    first = _SEPARATOR.search(text)
    return first[1] if first else b",\n  "


def _end_of_array(text: bytes) -> int | None:
    """Where the closing bracket of the array is, if all before it is sound."""
    for match in islice(_END_AFTER_OBJECT.finditer(text), JOINED_PARTS):
        if _decodes(_RAWS, b"[" + text[: match.start() + 1] + b"]"):
            return match.start(1)
    return None


def _boundary(text: bytes, start: int, separator: bytes) -> tuple[int, int] | None:
    """Where to end a batch that begins at ``start``, and where the next one begins; None: read on first."""
    at = text.find(b"}" + separator + b"{", start + BATCH_BYTES)
    if at < 0 and len(text) - start > STUCK_BYTES:
        at = text.rfind(b"}" + separator + b"{", start)
    if at >= 0:
        return at + 1, at + 1 + len(separator)
    if len(text) - start > STUCK_BYTES:
        matches = list(_SEPARATOR.finditer(text, len(text) - LEARN_BYTES))
        if matches:
            return matches[-1].start() + 1, matches[-1].end() - 1
    return None


def _parts(text: bytes) -> list[tuple[int, int]]:
    """Start and end of what stands between separators."""
    spans = []
    start = 0
    for match in _SPLIT.finditer(text):
        spans.append((start, match.start() + 1))
        start = match.end()
    spans.append((start, len(text)))
    return spans
