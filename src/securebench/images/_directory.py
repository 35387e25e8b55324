"""Copies a root file system from a directory, through the same writer as layers.

The directory is the operator's, but what lies in it need not be: entries are opened from descriptors, links are
copied as text, other file systems mounted in it (`/proc` in a chroot) are left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from securebench._fs import CHUNK, UnsafeEntry, open_directory
from securebench.errors import ConfigError, os_reason
from securebench.images._layers import write_fault
from securebench.images._tar import Kind, Member, show_name
from securebench.images._tree import names_in
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class _Unreadable(Exception):
    """Reading the source failed, as opposed to writing the copy."""

    def __init__(self, path: bytes, error: OSError) -> None:
        super().__init__(f"{show_name(path)} {os_reason(error)}")
        self.denied = isinstance(error, PermissionError)


def copy_directory(
    source: Path, writer: RootfsWriter, budget: Budget, on_bytes: Callable[[int], None] | None = None
) -> None:
    """Copy everything beneath `source`. Raises ConfigError naming the entry that cannot be taken, or StoreError."""
    try:
        with open_directory(source) as top:
            _Copy(writer, budget, os.fstat(top).st_dev, on_bytes).directory(top, b"", 0)
    except _Unreadable as error:
        hint = "; import it as the user who may read all of it (root for a chroot)" if error.denied else ""
        raise ConfigError(f"{source}: {error}{hint}") from error
    except OSError as error:
        raise ConfigError(f"{source} {os_reason(error)}") from error


class _Copy:
    def __init__(
        self, writer: RootfsWriter, budget: Budget, device: int, on_bytes: Callable[[int], None] | None
    ) -> None:
        self._writer = writer
        self._budget = budget
        self._device = device
        self._on_bytes = on_bytes
        self._names: dict[int, bytes] = {}  # first name of each file with several, by inode

    def directory(self, directory: int, path: bytes, depth: int) -> None:
        if depth > self._budget.limits.depth:
            raise ConfigError(f"{show_name(path)}: more than {self._budget.limits.depth} directories deep")
        try:
            names = sorted(names_in(directory))
        except OSError as error:
            raise _Unreadable(path, error) from error
        for name in names:
            self._entry(directory, name, path + b"/" + name if path else name, depth)

    def _entry(self, directory: int, name: bytes, path: bytes, depth: int) -> None:
        member = self._member(directory, name, path)
        if member.kind is Kind.FILE:
            with _Opened(directory, name, path, _FILE) as descriptor:
                self._put(member, self._chunks(descriptor, path))
            return
        self._put(member, ())
        if member.kind is Kind.DIRECTORY:
            with _Opened(directory, name, path, _DIRECTORY) as child:
                if os.fstat(child).st_dev == self._device:
                    self.directory(child, path, depth + 1)

    def _member(self, directory: int, name: bytes, path: bytes) -> Member:
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return Member(path, Kind.SYMLINK, target=os.readlink(name, dir_fd=directory))
        except OSError as error:
            raise _Unreadable(path, error) from error
        if stat.S_ISDIR(status.st_mode):
            return Member(path, Kind.DIRECTORY)
        if not stat.S_ISREG(status.st_mode) or status.st_dev != self._device:
            return Member(path, Kind.SPECIAL)
        if status.st_nlink > 1:
            first = self._names.setdefault(status.st_ino, path)
            if first is not path:
                return Member(path, Kind.HARDLINK, target=first)
        return Member(path, Kind.FILE, status.st_size, status.st_mode, max(0, status.st_mtime_ns))

    def _put(self, member: Member, data: Iterator[bytes] | tuple[()]) -> None:
        try:
            self._budget.add_member()
            self._writer.put(member, data)
        except UnsafeEntry as error:
            raise ConfigError(f"{show_name(member.name)}: {error}") from error
        except OSError as error:
            raise write_fault(error, show_name(member.name)) from error

    def _chunks(self, descriptor: int, path: bytes) -> Iterator[bytes]:
        left = self._budget.limits.file_bytes
        while True:
            try:
                chunk = os.read(descriptor, CHUNK)
            except OSError as error:
                raise _Unreadable(path, error) from error
            if not chunk:
                return
            left -= len(chunk)
            if left < 0:
                raise UnsafeEntry(f"it grew beyond {self._budget.limits.file_bytes} bytes while it was read")
            self._budget.add_bytes(len(chunk))
            if self._on_bytes is not None:
                self._on_bytes(self._budget.bytes)
            yield chunk


class _Opened:
    """A descriptor on an entry of the source, for the length of a `with`."""

    def __init__(self, directory: int, name: bytes, path: bytes, flags: int) -> None:
        self._arguments = directory, name, path, flags
        self._descriptor = -1

    def __enter__(self) -> int:
        directory, name, path, flags = self._arguments
        try:
            self._descriptor = os.open(name, flags, dir_fd=directory)
        except OSError as error:
            raise _Unreadable(path, error) from error
        return self._descriptor

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._descriptor)
