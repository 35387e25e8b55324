"""Two ways to open an entry of a hostile tree, with the same guarantees: beneath the root, through no link, on the
same mount, without waiting and without becoming a terminal's owner."""

from __future__ import annotations

import errno
import os
from typing import Protocol

from securebench.candidates import _openat2

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Openers(Protocol):
    """`directory` takes a path beneath the root, `file` one name in an open directory. Both raise OSError."""

    def directory(self, path: bytes) -> int: ...

    def file(self, directory: int, name: bytes) -> int: ...


class KernelOpeners:
    """Every path is resolved by `openat2`."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._open_directory = _openat2.opener(_DIRECTORY)
        self.file = _openat2.opener(_FILE)

    def directory(self, path: bytes) -> int:
        return self._open_directory(self._root, path or b".")


class PortableOpeners:
    """One component at a time, never following a link, never leaving the mount."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._device = os.fstat(root).st_dev
        self._mount = _mount(root)

    def directory(self, path: bytes) -> int:
        descriptor = os.open(".", _DIRECTORY, dir_fd=self._root)
        for part in path.split(b"/") if path else ():
            try:
                following = os.open(part, _DIRECTORY, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = self._on_the_same_mount(following)
        return descriptor

    def file(self, directory: int, name: bytes) -> int:
        return self._on_the_same_mount(os.open(name, _FILE, dir_fd=directory))

    def _on_the_same_mount(self, descriptor: int) -> int:
        if os.fstat(descriptor).st_dev == self._device and _mount(descriptor) == self._mount:
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def _mount(descriptor: int) -> bytes:
    """The number of the mount a descriptor lies on; empty where the system does not tell."""
    try:
        info = os.open(f"/proc/self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        text = os.read(info, 4096)
    finally:
        os.close(info)
    return next((line for line in text.splitlines() if line.startswith(b"mnt_id:")), b"")


def openers_for(root: int) -> Openers:
    """The kernel's own where it has them."""
    return KernelOpeners(root) if _openat2.available() else PortableOpeners(root)
