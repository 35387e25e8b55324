"""Put a stored tree into an empty directory: exact bytes, modes and links, one fixed time, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from securebench._fs import EPOCH_NS
from securebench.candidates.entry_names import system_name
from securebench.candidates.pack_file import write_all
from securebench.candidates.tree import DIRECTORY_MODE, EntryKind, Tree, TreeEntry
from securebench.errors import IntegrityError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TIMES = (EPOCH_NS, EPOCH_NS)


def write_tree(tree: Tree, directory: Path, chunks: Callable[[str], Iterator[bytes]]) -> None:
    """A tree has nothing beneath a link, and links are made last, so no write passes through one.

    Raises ValueError when the directory is not empty, IntegrityError, OSError."""
    if any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty; a tree is written from nothing")
    root = os.open(directory, _DIRECTORY)
    try:
        folders = [entry for entry in tree.entries if entry.kind is EntryKind.DIRECTORY]
        for folder in folders:
            os.mkdir(system_name(folder.path), 0o700, dir_fd=root)
        for entry in tree.files:
            _write_file(entry, root, chunks)
        for entry in tree.entries:
            if entry.kind is EntryKind.LINK:
                os.symlink(system_name(entry.target or ""), system_name(entry.path), dir_fd=root)
                os.utime(system_name(entry.path), ns=_TIMES, dir_fd=root, follow_symlinks=False)
        for folder in reversed(folders):
            os.chmod(system_name(folder.path), DIRECTORY_MODE, dir_fd=root)
            os.utime(system_name(folder.path), ns=_TIMES, dir_fd=root)
        os.utime(root, ns=_TIMES)
    finally:
        os.close(root)


def _write_file(entry: TreeEntry, root: int, chunks: Callable[[str], Iterator[bytes]]) -> None:
    descriptor = os.open(system_name(entry.path), _NEW, 0o600, dir_fd=root)
    try:
        size = 0
        for chunk in chunks(entry.digest):
            size += len(chunk)
            if len(chunk) > 65536 and not chunk.strip(b"\0"):
                os.lseek(descriptor, len(chunk), os.SEEK_CUR)  # zeros need no disk
            else:
                write_all(descriptor, chunk)
        if size != entry.size:
            raise IntegrityError(f"{entry.path} has {size} bytes in the candidate store; the tree says {entry.size}")
        os.ftruncate(descriptor, size)
        os.fchmod(descriptor, entry.mode)
        os.utime(descriptor, ns=_TIMES)
    finally:
        os.close(descriptor)
