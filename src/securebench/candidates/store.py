"""`CandidateStore`: captured bytes, written once, named by their sha256, read-only from then on.

Small contents share pack files, large ones have a file each, trees are JSON. Everything is written under a name of
its own, synced, and renamed: a crash leaves a whole thing or nothing. Several processes and threads may use one
store. Every read is checked against the digest it was asked for.

    blobs/ab/cdef…   one large content        packs/….pack   many small ones
    trees/ab/cdef….json                       tmp/           what is being written
                                              layers/        what is needed once"""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from securebench import _json
from securebench._leftovers import is_stale, owned_name
from securebench._removal import remove_tree
from securebench.candidates._blob_writing import CHUNK, Batch
from securebench.candidates._write_tree import write_tree
from securebench.candidates.pack_file import Place, read_index
from securebench.candidates.tree import Tree, TreeEntry, is_digest
from securebench.errors import IntegrityError, StoreError

MAX_TREE_JSON = 512 * 2**20


class CandidateStore:
    """Contents and trees beneath one directory, which is made when the first is put. Raises StoreError, and
    IntegrityError when something stored is not what it was.

    With `base` it also reads what is in another store, and writes nothing there: a verifier's private trees lie over
    the candidates', and never among the records."""

    def __init__(self, directory: Path, base: CandidateStore | None = None, *, shares: bool = False) -> None:
        self.directory = directory
        self._base = base
        self._shares = shares  # what the other one has is not written again
        self._lock = threading.Lock()
        self._places: dict[str, Place] = {}
        self._packs: set[str] = set()
        self._prepared = False

    def layer(self) -> CandidateStore:
        """A store over this one for what is needed once: it writes only what is not here, and `remove` ends it."""
        return CandidateStore(self.directory / "layers" / owned_name(os.urandom(8).hex()), self, shares=True)

    def remove(self) -> None:
        """Remove all that was written, which nobody may be using any more. Raises StoreError."""
        with _store_errors(self.directory):
            remove_tree(self.directory)

    # -- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Put many contents; all of them are stored and synced when the context ends well, none before."""
        batch = self._batch()
        try:
            yield batch
            with _store_errors(self.directory):
                batch.finish()
        finally:
            batch.close()
        with self._lock:
            self._places.update(batch.places)
            self._packs |= batch.packs

    def put(self, data: bytes | int) -> str:
        """Store one content, bytes or all that an open regular file holds; its digest."""
        with self.batch() as batch, _store_errors(self.directory):
            if isinstance(data, bytes):
                return batch.put_bytes(data)
            return batch.put_file(data, os.fstat(data).st_size)[0]

    def save(self, tree: Tree) -> str:
        """Store a tree whose contents are stored; its digest. Raises IntegrityError when one is missing."""
        batch = self._batch()
        for entry in tree.files:
            if not self.has(entry.digest):
                raise IntegrityError(f"{entry.path} is not in the candidate store")
        path = self._path("trees", tree.digest, ".json")
        with _store_errors(self.directory):
            if not path.exists():
                try:
                    batch.write_named(path, _json.dumps(tree.as_json()).encode())
                finally:
                    batch.close()
        return tree.digest

    # -- reading -------------------------------------------------------------------------------------------------

    def load(self, digest: str) -> Tree:
        """A stored tree, checked. Raises IntegrityError."""
        if self._base is not None and not self._path("trees", digest, ".json").exists():
            return self._base.load(digest)
        try:
            with _reading(self._path("trees", digest, ".json")) as file:
                data = file.read(MAX_TREE_JSON + 1)
            tree = Tree.from_json(_json.loads(data))
        except (OSError, ValueError, RecursionError) as error:
            raise IntegrityError(f"tree {digest} cannot be read from the candidate store: {error}") from error
        if tree.digest != digest:
            raise IntegrityError(f"tree {digest} was changed in the candidate store")
        return tree

    def has_tree(self, digest: str) -> bool:
        """Whether a tree is stored. Its contents are then, too."""
        here = self._path("trees", digest, ".json").exists()
        return here or (self._base is not None and self._base.has_tree(digest))

    def has(self, digest: str) -> bool:
        if not self._has(digest):
            self._refresh()
        return self._has(digest) or (self._base is not None and self._base.has(digest))

    def chunks(self, digest: str) -> Iterator[bytes]:
        """A content piece by piece. Raises IntegrityError, at the latest after the last piece."""
        sha = hashlib.sha256()
        for chunk in self._raw(digest):
            sha.update(chunk)
            yield chunk
        if f"sha256:{sha.hexdigest()}" != digest:
            raise IntegrityError(f"content {digest} was changed in the candidate store")

    def read(self, digest: str, limit: int) -> bytes:
        """A whole content of at most `limit` bytes. Raises ValueError when it has more, IntegrityError."""
        data = bytearray()
        for chunk in self.chunks(digest):
            data += chunk
            if len(data) > limit:
                raise ValueError(f"content {digest} has more than {limit} bytes")
        return bytes(data)

    def open(self, digest: str) -> BinaryIO:
        """A content as a file. Raises IntegrityError, at the latest when its end is read."""
        if self._base is not None and not self._has(digest):
            return self._base.open(digest)
        place = self._place(digest)
        if place is not None:
            return io.BytesIO(b"".join(self.chunks(digest)))
        return io.BufferedReader(_Checked(self.chunks(digest)), CHUNK)

    def materialize(self, tree: Tree, directory: Path) -> None:
        """Write a tree into an empty directory: exact bytes, modes and links, one fixed time. Raises ValueError
        when the directory is not empty, IntegrityError, StoreError."""
        with _store_errors(directory):
            write_tree(tree, directory, self.chunks)

    # -- inside --------------------------------------------------------------------------------------------------

    def _batch(self) -> Batch:
        with self._lock, _store_errors(self.directory):
            if not self._prepared:
                for name in ("blobs", "packs", "trees", "tmp"):
                    (self.directory / name).mkdir(parents=True, exist_ok=True)
                self._remove_stale()
                self._prepared = True
        self._refresh()
        known = _Known(self._places, self._base) if self._shares and self._base is not None else self._places
        return Batch(self.directory, known)

    def _has(self, digest: str) -> bool:
        return digest in self._places or (is_digest(digest) and self._path("blobs", digest).exists())

    def _place(self, digest: str) -> Place | None:
        if not is_digest(digest):
            raise IntegrityError(f"{digest[:100]!a} is not the digest of a content")
        if digest not in self._places and not self._path("blobs", digest).exists():
            self._refresh()
            if not self._has(digest):
                raise IntegrityError(f"content {digest} is not in the candidate store")
        return self._places.get(digest)

    def _raw(self, digest: str) -> Iterator[bytes]:
        if self._base is not None and not self._has(digest):
            yield from self._base._raw(digest)
            return
        place = self._place(digest)
        path = self._path("blobs", digest) if place is None else self.directory / "packs" / place[0]
        with _store_errors(self.directory), _reading(path) as file:
            if place is not None:
                yield os.pread(file.fileno(), place[2], place[1])
                return
            while chunk := file.read(CHUNK):
                yield chunk

    def _path(self, part: str, digest: str, suffix: str = "") -> Path:
        if not is_digest(digest):
            raise IntegrityError(f"{digest[:100]!a} is not a digest")
        return self.directory / part / digest[7:9] / (digest[9:] + suffix)

    def _refresh(self) -> None:
        """Learn of packs that were added since, by whomever."""
        with self._lock, _store_errors(self.directory), suppress(FileNotFoundError):  # nothing was ever put
            for name in sorted({path.name for path in (self.directory / "packs").iterdir()} - self._packs):
                with _reading(self.directory / "packs" / name) as file:
                    self._places.update(read_index(file.fileno(), name))
                self._packs.add(name)

    def _remove_stale(self) -> None:
        for path in (self.directory / "tmp").iterdir():
            if is_stale(path.name):
                path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Known:
    """The digests of what is stored here, or in the store beneath."""

    here: Container[str]
    beneath: CandidateStore

    def __contains__(self, digest: object) -> bool:
        return digest in self.here or (isinstance(digest, str) and self.beneath.has(digest))


class _Checked(io.RawIOBase):
    """A stream over checked pieces."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    with io.FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        yield file


@contextmanager
def _store_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"candidate store {directory}: {error.strerror or error}") from error


def file_entry(path: str, data: bytes, batch: Batch, executable: bool = False) -> TreeEntry:
    """The entry of a file whose bytes are given, put into the store with `batch`."""
    return TreeEntry.file(path, batch.put_bytes(data), len(data), executable)
