"""Copies a file or directory of the pack, reading each byte once, and says what the copy's digest is.

Sources are walked from descriptors (`_fs.walk`): a link or a swap during the copy leads nowhere else. The digest is of
the bytes that were written, so what was promised is compared with what the component will see."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from types import TracebackType

from securebench import _fs
from securebench._canonical import digest_value
from securebench._fs import CHUNK, EPOCH_NS
from securebench.errors import IntegrityError
from securebench.resources import PackFile
from securebench.workspaces.limits import WorkspaceBudget

READ_ONLY, WRITABLE = 0o444, 0o644
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_pack_file(source: PackFile, target: int, place: PurePosixPath, budget: WorkspaceBudget) -> None:
    """Copy `source` to `place` beneath the directory `target`, where nothing may be yet.

    Raises PackError beyond the budget, `_fs.UnsafeEntry` for an entry that is not plain, OSError, and IntegrityError
    when the copy is not what the pack was loaded with."""
    mode = READ_ONLY if source.read_only else WRITABLE
    lines: list[list[object]] = []  # as `_fs.tree_digest` makes them
    with (
        _fs.open_directory(source.root) as root,
        _fs.make_directories(target, place.parent) as parent,
        _Descent(parent, place.name) as copy,
    ):
        for entry in _fs.walk(root, source.path, budget.files):
            parts = entry.path.parts
            budget.take(entry.size if not entry.is_dir else 0)
            if entry.is_dir:
                copy.make_directory(parts)
                lines.append([str(entry.path), "dir"])
            else:
                sha = copy.write(parts, entry, mode | (0o111 if entry.executable else 0))
                lines.append([str(entry.path), "exec" if entry.executable else "file", sha])
    if digest_value(lines) != source.digest:
        raise IntegrityError(f"asset {source.path} changed since the pack was loaded; start again")


class _Descent:
    """The directories from the top of a copy down to where it is being written, each held open."""

    def __init__(self, parent: int, name: str) -> None:
        self._name = name
        self._open: list[tuple[str, int]] = [("", os.dup(parent))]

    def __enter__(self) -> _Descent:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._climb(0)

    def make_directory(self, parts: tuple[str, ...]) -> None:
        parent, name = self._place(parts)
        os.mkdir(name, 0o700, dir_fd=parent)
        self._open.append((name, os.open(name, _DIRECTORY, dir_fd=parent)))
        os.fchmod(self._open[-1][1], 0o755)  # whatever the umask is

    def write(self, parts: tuple[str, ...], entry: _fs.Entry, mode: int) -> str:
        """Write one file; the hexadecimal SHA-256 of what was written."""
        parent, name = self._place(parts)
        sha = hashlib.sha256()
        descriptor = os.open(name, _NEW, 0o600, dir_fd=parent)
        try:
            for chunk in _exactly(entry):
                sha.update(chunk)
                view = memoryview(chunk)
                while view:
                    view = view[os.write(descriptor, view) :]
            os.fchmod(descriptor, mode)
            os.utime(descriptor, ns=(EPOCH_NS, EPOCH_NS))
        finally:
            os.close(descriptor)
        return sha.hexdigest()

    def _place(self, parts: tuple[str, ...]) -> tuple[int, str]:
        """The directory and the name for an entry. The walk gives directories before what they hold."""
        path = (self._name, *parts)
        self._climb(len(path))
        if tuple(name for name, _ in self._open[1:]) != path[:-1]:
            raise ValueError(f"{'/'.join(path)} came before its directory")
        return self._open[-1][1], path[-1]

    def _climb(self, depth: int) -> None:
        while len(self._open) > depth:
            os.close(self._open.pop()[1])


def _exactly(entry: _fs.Entry) -> Iterator[bytes]:
    """The bytes a file had when it was looked at; one that shrinks or grows is found out by its digest."""
    left = entry.size
    while left and (chunk := os.read(entry.descriptor, min(CHUNK, left))):
        left -= len(chunk)
        yield chunk
