"""Reads the objects of a pack that somebody else made. Bounded in count, size and depth; trusts no number in it.

Objects have no names in a pack: an object's id is the hash of its content, computed here, so what is found under an
id is what the id stands for."""

from __future__ import annotations

import hashlib
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from securebench.workspaces._git.delta import apply_delta
from securebench.workspaces._git.objects import ID_BYTES, object_id

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFFSET_DELTA, _ID_DELTA = 6, 7
_CACHED = 64 * 2**20
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class PackLimits:
    """Bounds of one pack."""

    objects: int = 1_000_000
    object_bytes: int = 256 * 2**20
    total_bytes: int = 16 * 2**30  # after decompression
    work_bytes: int = 64 * 2**30  # read while applying deltas
    depth: int = 4096  # of a chain of deltas


class _Entry(NamedTuple):
    start: int  # of its compressed data
    size: int
    kind: bytes  # empty for a delta
    base: int | bytes  # the entry number or the id a delta builds on; -1 for none


class PackReader:
    """The objects of one pack by id. Raises ValueError for bytes that are no sound pack."""

    def __init__(self, data: memoryview, limits: PackLimits) -> None:
        self._data = data
        self._limits = limits
        self._entries: list[_Entry] = []
        self._cache: OrderedDict[int, tuple[bytes, bytes]] = OrderedDict()
        self._cached = 0
        self._work = 0
        self._scan()
        self._ids = self._identify()

    def find(self, prefix: str, kind: bytes) -> list[bytes]:
        """The ids of all objects of a kind that begin with these hexadecimal digits."""
        return [
            identity
            for identity, number in self._ids.items()
            if identity.hex().startswith(prefix) and self._read(number)[0] == kind
        ]

    def read(self, identity: bytes, kind: bytes) -> bytes:
        """The content of one object. Raises ValueError when the pack has no such object of that kind."""
        number = self._ids.get(identity)
        found, data = self._read(number) if number is not None else (b"", b"")
        if found != kind:
            raise ValueError(f"{kind.decode()} {identity.hex()} is missing; the bundle must be complete")
        return data

    def _scan(self) -> None:
        data = self._data
        if bytes(data[:8]) != b"PACK\0\0\0\2" or len(data) < 12 + ID_BYTES:
            raise ValueError("holds no pack of version 2")
        count = int.from_bytes(data[8:12], "big")
        if count > self._limits.objects:
            raise ValueError(f"holds {count} objects; at most {self._limits.objects} are allowed")
        body = data[: len(data) - ID_BYTES]
        if hashlib.sha1(body, usedforsecurity=False).digest() != bytes(data[len(body) :]):
            raise ValueError("is damaged: the checksum of its pack is wrong")
        at, total = 12, 0
        numbers: dict[int, int] = {}
        for number in range(count):
            numbers[at] = number
            entry = self._header(at, numbers)
            self._entries.append(entry)
            total += entry.size
            if entry.size > self._limits.object_bytes or total > self._limits.total_bytes:
                raise ValueError("holds more bytes than allowed")
            at = self._inflate(entry)[1]
        if at != len(body):
            raise ValueError("is damaged: there are bytes after the last object of its pack")

    def _header(self, offset: int, numbers: dict[int, int]) -> _Entry:
        data, at = self._data, offset
        try:
            byte = data[at]
            at += 1
            kind, size, shift = (byte >> 4) & 7, byte & 15, 4
            while byte & 0x80 and shift < 64:
                byte = data[at]
                at += 1
                size |= (byte & 0x7F) << shift
                shift += 7
            if kind == _OFFSET_DELTA:
                distance, at = self._distance(at)
                base = numbers.get(offset - distance)
                if base is None or distance == 0:
                    raise ValueError("is damaged: a delta builds on nothing")
                return _Entry(at, size, b"", base)
            if kind == _ID_DELTA:
                return _Entry(at + ID_BYTES, size, b"", bytes(data[at : at + ID_BYTES]))
        except IndexError:
            raise ValueError("is damaged: it ends too early") from None
        if kind not in _KINDS:
            raise ValueError("is damaged: an object of unknown kind")
        return _Entry(at, size, _KINDS[kind], -1)

    def _distance(self, at: int) -> tuple[int, int]:
        byte = self._data[at]
        at += 1
        distance = byte & 0x7F
        while byte & 0x80 and distance < 1 << 62:
            byte = self._data[at]
            at += 1
            distance = ((distance + 1) << 7) | (byte & 0x7F)
        return distance, at

    def _inflate(self, entry: _Entry) -> tuple[bytes, int]:
        """The bytes of an entry as stored, and where the next one begins."""
        inflate = zlib.decompressobj()
        pieces, left, at = [], entry.size, entry.start
        step = min(_STEP, max(256, entry.size))
        try:
            while not inflate.eof:
                chunk = inflate.unconsumed_tail or self._data[at : at + step]
                if not inflate.unconsumed_tail:
                    at += len(chunk)
                    step = _STEP
                if not len(chunk):
                    raise ValueError("is damaged: it ends too early")
                piece = inflate.decompress(chunk, left + 1)
                left -= len(piece)
                pieces.append(piece)
                if left < 0:
                    raise ValueError("is damaged: an object is longer than it says")
        except zlib.error:
            raise ValueError("is damaged: an object cannot be decompressed") from None
        if left:
            raise ValueError("is damaged: an object is shorter than it says")
        return b"".join(pieces), at - len(inflate.unused_data)

    def _identify(self) -> dict[bytes, int]:
        """The id of every object. A delta may build on an id that only becomes known later: repeat until done."""
        ids: dict[bytes, int] = {}
        self._ids = ids
        todo = list(range(len(self._entries)))
        while todo:
            waiting = []
            for number in todo:
                if self._ready(number):
                    ids[object_id(*self._read(number))] = number
                else:
                    waiting.append(number)
            if len(waiting) == len(todo):
                raise ValueError("builds on objects it does not hold; the bundle must be complete")
            todo = waiting
        return ids

    def _ready(self, number: int) -> bool:
        return self._chain(number) is not None

    def _chain(self, number: int) -> list[int] | None:
        """The entry and all it builds on, down to a whole or known one; None while an id is still unknown."""
        chain = [number]
        while number not in self._cache and not self._entries[number].kind:
            base = self._entries[number].base
            following = base if isinstance(base, int) else self._ids.get(base)
            if following is None:
                return None
            number = following
            chain.append(number)
            if len(chain) > self._limits.depth:
                raise ValueError(f"holds a chain of more than {self._limits.depth} deltas")
        return chain

    def _read(self, number: int) -> tuple[bytes, bytes]:
        """Kind and content of an object."""
        chain = self._chain(number)
        if chain is None:
            raise ValueError("builds on objects it does not hold; the bundle must be complete")
        last = chain.pop()
        found = self._cache.get(last)
        if found is None:
            entry = self._entries[last]
            found = entry.kind, self._inflate(entry)[0]
            self._keep(last, found)
        kind, data = found
        for step in reversed(chain):
            self._spend(len(data))
            data = apply_delta(data, self._inflate(self._entries[step])[0], self._limits.object_bytes)
            self._keep(step, (kind, data))
        return kind, data

    def _spend(self, size: int) -> None:
        """Small deltas can ask for much copying."""
        self._work += size
        if self._work > self._limits.work_bytes:
            raise ValueError("takes more work to read than allowed")

    def _keep(self, number: int, found: tuple[bytes, bytes]) -> None:
        self._cache[number] = found
        self._cached += len(found[1])
        while self._cached > _CACHED:
            _, (_, old) = self._cache.popitem(last=False)
            self._cached -= len(old)
