"""Writes members into a root file system. Nothing it does can reach outside, whatever the members are.

- A member's directory is found by `Inside`; its last name is never followed: what is there is replaced, except that
  a directory onto a directory merges.
- Files are made anew (`O_EXCL`), readable by all, executable by all or none, never writable, setuid or setgid. Owner,
  extended attributes and capabilities are not kept. The time is: compiled Python modules are checked against it.
- Devices and FIFOs are not made; they are counted.
- A whiteout hides what lower layers brought, never what its own layer brings, in whatever order they come.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from typing import TypeVar

from securebench._fs import TooLarge, UnsafeEntry
from securebench.images._inside import Inside, Place, split_name
from securebench.images._tar import Kind, Member
from securebench.images._tree import names_in, remove_entry
from securebench.images.budget import Budget

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_TARGET = 4095

T = TypeVar("T")


class RootfsWriter:
    """One tree under construction beneath a directory descriptor. Use as a context manager."""

    def __init__(self, root: int, budget: Budget) -> None:
        self._inside = Inside(root, budget)
        self._limits = budget.limits
        self._brought: set[bytes] = set()  # real paths this layer wrote, and the directories above them
        self._cleared: set[bytes] = set()  # directories in which nothing of lower layers is left
        self.skipped = 0

    def __enter__(self) -> RootfsWriter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._inside.forget()

    def begin_layer(self) -> None:
        """What was written so far belongs to lower layers from now on."""
        self._brought.clear()
        self._cleared.clear()

    def put(self, member: Member, data: Iterable[bytes]) -> None:
        """Write one member. Raises UnsafeEntry with the rule that was broken; OSError from the file system."""
        parts = split_name(member.name, self._limits.path_bytes)
        if not parts:
            if member.kind is not Kind.DIRECTORY:
                raise UnsafeEntry(f"it makes the root directory a {member.kind.value}")
            return
        if member.kind is Kind.FILE:
            self._file(parts, member, data)
        elif member.kind is Kind.DIRECTORY:
            self._directory(parts)
        elif member.kind is Kind.SYMLINK:
            self._symlink(parts, member.target)
        elif member.kind is Kind.HARDLINK:
            self._hardlink(parts, member.target)
        else:
            self.skipped += 1
            self.hide(parts)

    def hide(self, parts: list[bytes]) -> None:
        """Remove what lower layers have at `parts`."""
        place = self._inside.find(parts[:-1], create=False)
        if place is not None:
            self._hide(place.descriptor, parts[-1], place.child(parts[-1]))

    def hide_contents(self, parts: list[bytes]) -> None:
        """Remove what lower layers have beneath the directory `parts`."""
        place = self._inside.find(parts, create=False)
        if place is not None:
            self._clear(place.descriptor, place.path)

    def _hide(self, directory: int, name: bytes, path: bytes) -> None:
        try:
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        if path not in self._brought:
            self._remove(directory, name, mode)
        elif stat.S_ISDIR(mode):
            child = os.open(name, _DIRECTORY, dir_fd=directory)
            try:
                self._clear(child, path)
            finally:
                os.close(child)

    def _clear(self, directory: int, path: bytes) -> None:
        if path in self._cleared:
            return
        self._cleared.add(path)
        held = os.dup(directory)  # `_remove` may give up the descriptors of `Inside`
        try:
            for name in names_in(held):
                self._hide(held, name, path + b"/" + name if path else name)
        finally:
            os.close(held)

    def _remove(self, directory: int, name: bytes, mode: int) -> None:
        remove_entry(directory, name)
        if stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
            self._inside.forget()

    def _place(self, parts: list[bytes]) -> Place:
        place = self._inside.find(parts[:-1], create=True)
        assert place is not None  # noqa: S101  (create=True)
        return place

    def _make(self, parts: list[bytes], operation: Callable[[int, bytes], T]) -> T:
        """Run an operation that makes `parts` anew, in place of anything that is there."""
        name = parts[-1]
        place = self._place(parts)
        self._bring(place.child(name))
        try:
            return operation(place.descriptor, name)
        except FileExistsError:
            mode = os.stat(name, dir_fd=place.descriptor, follow_symlinks=False).st_mode
            self._remove(place.descriptor, name, mode)
        return operation(self._place(parts).descriptor, name)

    def _bring(self, path: bytes) -> None:
        while path and path not in self._brought:
            self._brought.add(path)
            path = path.rpartition(b"/")[0]

    def _file(self, parts: list[bytes], member: Member, data: Iterable[bytes]) -> None:
        if member.size > self._limits.file_bytes:
            raise TooLarge(f"it has {member.size} bytes; at most {self._limits.file_bytes} are allowed")
        descriptor = self._make(parts, _new_file)
        try:
            for chunk in data:
                written = os.write(descriptor, chunk)
                while written < len(chunk):
                    written += os.write(descriptor, memoryview(chunk)[written:])
            os.fchmod(descriptor, 0o555 if member.mode & 0o111 else 0o444)
            os.utime(descriptor, ns=(member.mtime_ns, member.mtime_ns))
        finally:
            os.close(descriptor)

    def _directory(self, parts: list[bytes]) -> None:
        def make(directory: int, name: bytes) -> None:
            try:
                os.mkdir(name, 0o700, dir_fd=directory)
            except FileExistsError:
                # Merging keeps what lower layers brought; anything but a directory is replaced.
                if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                    raise

        self._make(parts, make)

    def _symlink(self, parts: list[bytes], target: bytes) -> None:
        if not target or b"\0" in target or len(target) > _MAX_TARGET:
            raise UnsafeEntry(f"its link target is empty, contains a NUL byte or is longer than {_MAX_TARGET} bytes")
        self._make(parts, lambda directory, name: os.symlink(target, name, dir_fd=directory))

    def _hardlink(self, parts: list[bytes], target: bytes) -> None:
        source = split_name(target, self._limits.path_bytes)

        def make(directory: int, name: bytes) -> None:
            held = os.dup(directory)  # looking up the other directory may give up this one
            try:
                place = self._inside.find(source[:-1], create=False) if source else None
                if place is None or not _can_be_linked(place.descriptor, source[-1]):
                    raise UnsafeEntry("it is a hard link to something that is not a file of this image")
                os.link(source[-1], name, src_dir_fd=place.descriptor, dst_dir_fd=held, follow_symlinks=False)
            finally:
                os.close(held)

        self._make(parts, make)


def _new_file(directory: int, name: bytes) -> int:
    return os.open(name, _NEW_FILE, 0o600, dir_fd=directory)


def _can_be_linked(directory: int, name: bytes) -> bool:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)
