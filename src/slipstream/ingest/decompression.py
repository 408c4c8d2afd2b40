"""Bytes of a file, decompressed in pieces by what they are, not by how the file is called."""

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard
from isal import igzip_lib, isal_zlib

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
READ_BYTES = 128 * 1024
PIECE_BYTES = 1024 * 1024
"""Most that one piece may hold, so that a highly compressible file cannot fill the memory at once."""


class _Decompressor(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class Readable(Protocol):
    """What is asked of a file."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many; none at the end."""

    def seek(self, offset: int, /) -> int:
        """Go on from there."""


class Decompression:
    """Iterates over the decompressed pieces of a file.

    ``damage`` tells afterwards, in a few words, why the bytes ended early; None when the file was whole.

    Args:
        file: opened for reading bytes, at its start, seekable.
    """

    def __init__(self, file: Readable) -> None:
        self._file = file
        self.damage: str | None = None
        self.read_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        head = self._file.read(4)
        self._file.seek(0)
        if head.startswith(GZIP):
            return self._gzip()
        if head.startswith(ZSTD):
            return self._zstd()
        return self._plain()

    def _read(self) -> bytes:
        data = self._file.read(READ_BYTES)
        self.read_bytes += len(data)
        return data

    def _plain(self) -> Iterator[bytes]:
        while data := self._file.read(PIECE_BYTES):
            self.read_bytes += len(data)
            yield data

    def _gzip(self) -> Iterator[bytes]:
        given = 0
        try:
            for piece in self._members():
                given += len(piece)
                yield piece
        except igzip_lib.IsalError:  # type: ignore[misc]  # its stub declares no base
            yield from self._salvage(given)

    def _members(self) -> Iterator[bytes]:
        data = self._read()
        while data:
            member = isal_zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = member.decompress(data, PIECE_BYTES)
                data = member.unconsumed_tail
                if piece:
                    yield piece
                elif not data and not member.eof:
                    # All input is used up and nothing is held back any more.
                    data = self._read()
                    if not data:
                        self.damage = "the gzip data ends before its trailer"
                        return
            data = (member.unused_data or self._read()).lstrip(b"\0") or self._read().lstrip(b"\0")
            if data and not GZIP.startswith(data[:2]):
                self.damage = "other bytes follow the gzip data"
                return

    def _salvage(self, given: int) -> Iterator[bytes]:
        """What lies before damaged gzip data, from the first byte on that was not handed out yet."""
        self.damage = "the gzip data is damaged"
        self._file.seek(0)
        member = zlib.decompressobj(wbits=31)
        seen = 0
        while data := self._file.read(1024):
            try:
                pieces = [member.copy().decompress(data)]
                member.decompress(data)
            except zlib.error:
                pieces = list(_bytewise(member, data))
                data = b""
            for piece in pieces:
                fresh = piece[max(0, given - seen) :]
                seen += len(piece)
                if fresh:
                    yield fresh
            if not data or member.eof:
                return

    def _zstd(self) -> Iterator[bytes]:
        data = self._read()
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj(write_size=PIECE_BYTES)
            while data and not frame.eof:
                try:
                    piece = frame.decompress(data)
                except zstandard.ZstdError:
                    self.damage = "the zstd data is damaged"
                    return
                if piece:
                    yield piece
                data = b"" if frame.eof else self._read()
            if not frame.eof:
                self.damage = "the zstd data ends before its last frame does"
                return
            data = frame.unused_data or self._read()


def _bytewise(member: _Decompressor, data: bytes) -> Iterator[bytes]:
    for at in range(len(data)):
        try:
            yield member.decompress(data[at : at + 1])
        except zlib.error:
            return
