"""Writes a pack and its index: every object whole, compressed, once."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from securebench.workspaces._git.objects import object_id

_TYPES = {b"commit": 1, b"tree": 2, b"blob": 3}
_CHUNK = 1 << 20


class PackWriter:
    """One pack under construction in a file opened for reading and writing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 12
        self._objects: dict[bytes, tuple[int, int]] = {}  # id → CRC of its entry, offset
        file.write(struct.pack(">4sII", b"PACK", 2, 0))  # the count is put in by `finish`

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._objects

    def add(self, kind: bytes, data: bytes) -> bytes:
        """Add an object unless it is there; its id."""
        identity = object_id(kind, data)
        if identity not in self._objects:
            self.add_stream(kind, identity, len(data), [data])
        return identity

    def add_stream(self, kind: bytes, identity: bytes, size: int, chunks: Iterable[bytes]) -> None:
        """Add an object whose id the caller has computed from the same bytes."""
        crc, start = 0, self._offset
        for piece in _entry(kind, size, chunks):
            crc = zlib.crc32(piece, crc)
            self._offset += self._file.write(piece)
        self._objects[identity] = crc, start

    def finish(self) -> bytes:
        """Complete the pack; its checksum."""
        self._file.seek(8)
        self._file.write(struct.pack(">I", len(self._objects)))
        self._file.seek(0)
        sha = hashlib.sha1(usedforsecurity=False)
        while chunk := self._file.read(_CHUNK):
            sha.update(chunk)
        self._file.write(sha.digest())
        return sha.digest()

    def index(self, checksum: bytes) -> bytes:
        """The index of the finished pack (version 2)."""
        ordered = sorted(self._objects)
        fanout, seen = [], 0
        for first in range(256):
            while seen < len(ordered) and ordered[seen][0] <= first:
                seen += 1
            fanout.append(seen)
        large: list[int] = []
        offsets = []
        for identity in ordered:
            offset = self._objects[identity][1]
            if offset >= 1 << 31:
                large.append(offset)
                offset = (1 << 31) | (len(large) - 1)
            offsets.append(offset)
        body = b"".join(
            [
                b"\377tOc" + struct.pack(">I256I", 2, *fanout),
                *ordered,
                struct.pack(f">{len(ordered)}I", *(self._objects[identity][0] for identity in ordered)),
                struct.pack(f">{len(ordered)}I", *offsets),
                struct.pack(f">{len(large)}Q", *large),
                checksum,
            ]
        )
        return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _entry(kind: bytes, size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    deflate = zlib.compressobj(1)
    yield _entry_header(kind, size)
    for chunk in chunks:
        yield deflate.compress(chunk)
    yield deflate.flush()


def _entry_header(kind: bytes, size: int) -> bytes:
    first = (_TYPES[kind] << 4) | (size & 15)
    size >>= 4
    header = bytearray()
    while size:
        header.append(first | 128)
        first = size & 127
        size >>= 7
    header.append(first)
    return bytes(header)
