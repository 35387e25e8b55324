"""A finished root file system: made read-only, digested, removed. Walks by descriptors, follows no link.

The digest covers names, kinds, permission bits, link targets and contents; not times, owners or link counts, which
do not survive a copy. Each entry adds `kind, length of path, path, mode, length of payload, payload`, so that no two
trees give the same bytes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from securebench._fs import CHUNK, EPOCH_NS
from securebench.errors import IntegrityError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY_MODE = 0o555


@dataclass(slots=True)
class TreeSummary:
    """What a tree holds. `bytes` counts a file with several names once."""

    digest: str = ""
    files: int = 0
    directories: int = 0
    links: int = 0
    bytes: int = 0


def seal_tree(root: int) -> None:
    """Take write permission from every directory and give them the one fixed time. Files have theirs already."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        with _opened(name, _DIRECTORY, root) as child:
            seal_tree(child)
    os.fchmod(root, DIRECTORY_MODE)
    os.utime(root, ns=(EPOCH_NS, EPOCH_NS))


def summarize_tree(root: int, on_bytes: Callable[[int], None] | None = None) -> TreeSummary:
    """Counts and the digest of a tree. Raises IntegrityError for an entry that no import makes."""
    return _Digester(on_bytes).run(root)


class _Digester:
    def __init__(self, on_bytes: Callable[[int], None] | None) -> None:
        self._sha = hashlib.sha256()
        self._summary = TreeSummary()
        self._seen: dict[int, bytes] = {}  # by inode, for files with several names
        self._on_bytes = on_bytes

    def run(self, root: int) -> TreeSummary:
        self._directory(root, b"")
        self._summary.digest = "sha256:" + self._sha.hexdigest()
        return self._summary

    def _add(self, kind: bytes, path: bytes, mode: int, payload: bytes) -> None:
        head = b"%s %d %o %d " % (kind, len(path), stat.S_IMODE(mode), len(payload))
        self._sha.update(head + path + payload)

    def _directory(self, directory: int, path: bytes) -> None:
        self._summary.directories += 1
        self._add(b"directory", path, os.fstat(directory).st_mode, b"")
        for name in sorted(names_in(directory)):
            self._entry(directory, name, path + b"/" + name)

    def _entry(self, directory: int, name: bytes, path: bytes) -> None:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            with _opened(name, _DIRECTORY, directory) as child:
                self._directory(child, path)
        elif stat.S_ISLNK(status.st_mode):
            self._summary.links += 1
            self._add(b"link", path, 0, os.readlink(name, dir_fd=directory))
        elif stat.S_ISREG(status.st_mode):
            self._summary.files += 1
            self._add(b"file", path, status.st_mode, self._contents(directory, name, status))
        else:
            raise IntegrityError(f"{path.decode(errors='backslashreplace')} is a special file; no import makes one")

    def _contents(self, directory: int, name: bytes, status: os.stat_result) -> bytes:
        known = self._seen.get(status.st_ino)
        if known is not None:
            return known
        sha = hashlib.sha256()
        with _opened(name, _FILE, directory) as descriptor:
            while chunk := os.read(descriptor, CHUNK):
                sha.update(chunk)
                self._summary.bytes += len(chunk)
        if self._on_bytes is not None:
            self._on_bytes(self._summary.bytes)
        digest = sha.digest()
        if status.st_nlink > 1:
            self._seen[status.st_ino] = digest
        return digest


def names_in(directory: int) -> list[bytes]:
    """The entries of a directory, by descriptor."""
    return [os.fsencode(name) for name in os.listdir(directory)]


def remove_entry(parent: int, name: bytes) -> None:
    """Remove whatever `name` is, with all beneath it, also where directories are read-only."""
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        os.unlink(name, dir_fd=parent)
        return
    with _opened(name, _DIRECTORY, parent) as directory:
        os.fchmod(directory, 0o700)
        for child in names_in(directory):
            remove_entry(directory, child)
    os.rmdir(name, dir_fd=parent)


@contextmanager
def _opened(name: str | bytes, flags: int, parent: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
