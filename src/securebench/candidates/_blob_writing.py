"""Writing contents into a candidate store: hashed while they are copied, no byte read twice, none held for long."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Container, Iterator
from itertools import chain, count
from pathlib import Path

from securebench._fs import UnsafeEntry
from securebench._leftovers import owned_name
from securebench.candidates.holes import runs
from securebench.candidates.pack_file import PackWriter, Place, write_all

CHUNK = 1024 * 1024
SMALL = 128 * 1024
PACK_BYTES = 512 * 2**20
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ZEROS = bytes(CHUNK)
_numbers = count()


class Stored:
    """Bytes on disk that were stored since, by any batch of this process; for whoever has to look after a disk."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.bytes = 0

    def add(self, descriptor: int) -> None:
        with self._lock:
            self.bytes += os.fstat(descriptor).st_blocks * 512


STORED = Stored()


class Batch:
    """One writer of one process. What it put is stored once `finish` returns.

    `packed` are contents that are stored already, at least the small ones. Raises OSError when the store cannot be
    written, and UnsafeEntry when a file to be stored cannot be read."""

    def __init__(self, directory: Path, packed: Container[str]) -> None:
        self._directory = directory
        self._packed = packed
        self._pack: PackWriter | None = None
        self._pack_file = -1
        self._pack_path = Path()
        self.places: dict[str, Place] = {}
        self.packs: set[str] = set()
        self._temporary: set[Path] = set()
        self._unsynced: set[Path] = set()

    def put_bytes(self, data: bytes) -> str:
        """Store a content that is in memory."""
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        if digest in self._packed or digest in self.places:
            return digest
        if len(data) > SMALL:
            return self._put_large(iter([data]))[0]
        pack = self._pack or self._start_pack()
        if digest in pack:
            return digest
        pack.append(digest, data)
        if pack.size >= PACK_BYTES:
            self._finish_pack()
        return digest

    def put_file(self, descriptor: int, size: int, sparse: bool = False) -> tuple[str, int]:
        """Store the first `size` bytes of a regular file, or what it still has of them; digest and true size."""
        if size <= SMALL:
            try:
                data = read_up_to(descriptor, size)
            except OSError as error:
                raise unreadable(error) from error
            return self.put_bytes(data), len(data)
        return self._put_large(_pieces(descriptor, size, sparse))

    def put_pieces(self, pieces: Iterator[bytes]) -> str:
        """Store a content that comes piece by piece; its zeros take no disk."""
        head = bytearray()
        for piece in pieces:
            head += piece
            if len(head) > SMALL:
                return self._put_large(run for part in chain([bytes(head)], pieces) for run in runs(part))[0]
        return self.put_bytes(bytes(head))

    def write_named(self, path: Path, data: bytes) -> None:
        """A file of its own, complete or not there."""
        descriptor, temporary = self._open_temporary()
        try:
            write_all(descriptor, data)
            self._settle(descriptor, temporary, path)
        finally:
            os.close(descriptor)
        self._sync_directories()

    def finish(self) -> None:
        """Everything put so far is on disk and can be found."""
        self._finish_pack()
        self._sync_directories()

    def close(self) -> None:
        """Remove what was not finished."""
        if self._pack is not None:
            self._pack.close()
            self._pack = None
        if self._pack_file >= 0:
            os.close(self._pack_file)
            self._pack_file = -1
        for path in self._temporary:
            path.unlink(missing_ok=True)
        self._temporary.clear()

    def _put_large(self, pieces: Iterator[bytes | int]) -> tuple[str, int]:
        """Pieces are bytes, or a number of zeros for which no disk is used."""
        descriptor, temporary = self._open_temporary()
        sha, size = hashlib.sha256(), 0
        try:
            for piece in pieces:
                if isinstance(piece, int):
                    for start in range(0, piece, CHUNK):
                        sha.update(memoryview(_ZEROS)[: min(CHUNK, piece - start)])
                    os.lseek(descriptor, piece, os.SEEK_CUR)
                    size += piece
                else:
                    sha.update(piece)
                    write_all(descriptor, piece)
                    size += len(piece)
            digest = "sha256:" + sha.hexdigest()
            target = self._directory / "blobs" / digest[7:9] / digest[9:]
            if target.exists() or digest in self._packed:
                temporary.unlink()
                self._temporary.discard(temporary)
            else:
                os.ftruncate(descriptor, size)
                self._settle(descriptor, temporary, target)
        finally:
            os.close(descriptor)
        return digest, size

    def _start_pack(self) -> PackWriter:
        self._pack_file, self._pack_path = self._open_temporary()
        self._pack = PackWriter(self._pack_file)
        return self._pack

    def _finish_pack(self) -> None:
        if self._pack is None:
            return
        name = f"{self._pack_path.name}.pack"
        places = self._pack.finish(name)
        self._pack.close()
        self._settle(self._pack_file, self._pack_path, self._directory / "packs" / name)
        os.close(self._pack_file)
        self._pack, self._pack_file = None, -1
        self.places.update(places)
        self.packs.add(name)

    def _open_temporary(self) -> tuple[int, Path]:
        path = self._directory / "tmp" / owned_name(f"{next(_numbers)}-{os.urandom(8).hex()}")
        descriptor = os.open(path, _NEW, 0o600)
        self._temporary.add(path)
        return descriptor, path

    def _settle(self, descriptor: int, temporary: Path, target: Path) -> None:
        """Make a complete file permanent under its name. Names say what is inside, so replacing changes nothing."""
        os.fchmod(descriptor, 0o444)
        os.fsync(descriptor)
        STORED.add(descriptor)
        if not target.parent.exists():
            target.parent.mkdir(exist_ok=True)
            self._unsynced.add(target.parent.parent)
        temporary.rename(target)
        self._temporary.discard(temporary)
        self._unsynced.add(target.parent)

    def _sync_directories(self) -> None:
        for path in sorted(self._unsynced):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._unsynced.clear()


def unreadable(error: OSError) -> UnsafeEntry:
    return UnsafeEntry(f"cannot be read ({(error.strerror or '').lower()})")


def read_up_to(descriptor: int, size: int) -> bytes:
    """At most `size` bytes; fewer only at the end of the file."""
    data = os.read(descriptor, size) if size else b""
    if len(data) < size:
        while more := os.read(descriptor, size - len(data)):
            data += more
            if len(data) == size:
                break
    return data


def _pieces(descriptor: int, size: int, sparse: bool) -> Iterator[bytes | int]:
    """The first `size` bytes of a file, holes as their length where the file has any."""
    place = 0
    while place < size:
        end = size
        if sparse:
            start, end = _next_data(descriptor, place, size)
            if start > place:
                yield start - place
                place = start
                os.lseek(descriptor, place, os.SEEK_SET)
        while place < end:
            try:
                data = os.read(descriptor, min(CHUNK, end - place))
            except OSError as error:
                raise unreadable(error) from error
            if not data:
                return  # it became shorter
            yield data
            place += len(data)


def _next_data(descriptor: int, place: int, size: int) -> tuple[int, int]:
    """Where the next bytes that are not a hole begin and end, within `size`."""
    try:
        start = min(os.lseek(descriptor, place, os.SEEK_DATA), size)
        end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size) if start < size else size
    except OSError:
        # Nothing but a hole follows, or it became shorter; what it really has is decided by its size now.
        real = min(os.fstat(descriptor).st_size, size)
        return max(real, place), max(real, place)
    os.lseek(descriptor, start, os.SEEK_SET)
    return start, end
