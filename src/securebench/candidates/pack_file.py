"""Many small contents in one file: data, then an index, then a footer that pins the index.

A pack appears under its name only when it is complete and on disk. One whose footer, index or length does not check
out is an IntegrityError; a content read from it is checked against its digest besides."""

from __future__ import annotations

import hashlib
import os
import struct
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, repeat

from securebench.errors import IntegrityError

MAGIC = b"sbpack1\n"
_RECORD = 32 + 8  # a digest and a size
_FOOTER = struct.Struct(">Q32s8s")
_FLUSH = 4 * 2**20
_VECTORS = 1000  # the kernel takes 1024 pieces at once


Place = tuple[str, int, int]
"""Where a content lies: the pack, the offset, the size. A plain tuple, because there are many."""


class PackWriter:
    """Appends to a new file, many contents with one call. None may come twice, and none is readable before `finish`.
    What does not fit into one call is written by a thread, while the next is gathered. `size` is what was given to
    it so far. Raises OSError; `close` ends the thread."""

    def __init__(self, descriptor: int) -> None:
        write_all(descriptor, MAGIC)
        self._descriptor = descriptor
        self._waiting: dict[str, bytes] = {}
        self._waiting_bytes = 0
        self._thread: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None
        self._sizes: dict[str, int] = {}
        self.size = 0

    def __contains__(self, digest: str) -> bool:
        return digest in self._waiting or digest in self._sizes

    def append(self, digest: str, data: bytes) -> None:
        self._waiting[digest] = data
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= _FLUSH or len(self._waiting) >= _VECTORS:
            self._flush()

    def finish(self, name: str) -> dict[str, Place]:
        """Write index and footer; where everything lies once the pack has this name."""
        last = self._gather()
        index = _index(self._sizes)
        last += [index, _FOOTER.pack(len(self._sizes), hashlib.sha256(index).digest(), MAGIC)]
        self._join()
        _write_pieces(self._descriptor, last)
        return _places(name, list(self._sizes), list(self._sizes.values()))

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _flush(self) -> None:
        self._thread = self._thread or ThreadPoolExecutor(1)
        self._join()
        self._writing = self._thread.submit(_write_pieces, self._descriptor, self._gather())

    def _gather(self) -> list[bytes]:
        """What is to be written next, now counted."""
        pieces = list(self._waiting.values())
        self._sizes.update(zip(self._waiting, map(len, pieces), strict=True))
        self.size += self._waiting_bytes
        self._waiting, self._waiting_bytes = {}, 0
        return pieces

    def _join(self) -> None:
        if self._writing is not None:
            self._writing.result()


def _write_pieces(descriptor: int, pieces: list[bytes]) -> None:
    written = os.writev(descriptor, pieces)
    if written < sum(map(len, pieces)):
        write_all(descriptor, memoryview(b"".join(pieces))[written:])


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _index(sizes: dict[str, int]) -> bytes:
    """All digests, then all sizes: contents lie one after the other, so sizes say where."""
    return bytes.fromhex("".join([digest[7:] for digest in sizes])) + struct.pack(f">{len(sizes)}Q", *sizes.values())


def _places(name: str, digests: list[str], sizes: list[int]) -> dict[str, Place]:
    offsets = accumulate(sizes, initial=len(MAGIC))
    return dict(zip(digests, zip(repeat(name), offsets, sizes, strict=False), strict=True))


def read_index(descriptor: int, name: str) -> dict[str, Place]:
    """Every content of a pack by its digest. Raises IntegrityError when the pack is torn or was changed."""
    size = os.fstat(descriptor).st_size
    torn = IntegrityError(f"candidate pack {name} is torn or was changed; its candidates cannot be used")
    if size < len(MAGIC) + _FOOTER.size or os.pread(descriptor, len(MAGIC), 0) != MAGIC:
        raise torn
    count, sha, magic = _FOOTER.unpack(os.pread(descriptor, _FOOTER.size, size - _FOOTER.size))
    start = size - _FOOTER.size - count * _RECORD
    if magic != MAGIC or start < len(MAGIC):
        raise torn
    index = os.pread(descriptor, count * _RECORD, start)
    if len(index) != count * _RECORD or hashlib.sha256(index).digest() != sha:
        raise torn
    digests = [f"sha256:{index[at : at + 32].hex()}" for at in range(0, 32 * count, 32)]
    sizes = list(struct.unpack(f">{count}Q", index[32 * count :]))
    if len(MAGIC) + sum(sizes) != start:
        raise torn
    return _places(name, digests, sizes)
