"""The inside half of `seed.py`: writes a tree into scratch directories before any command has run.

Standard library only, and not even `seed.py`, whose imports the launching process does without."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = struct.Struct("<BIqIQ")  # as in seed.py
DIRECTORY, FILE, TARGET, END, LINK = 1, 2, 3, 4, 5


def unpack(read: Callable[[int], bytes], roots: dict[bytes, int]) -> None:
    """Write the tree that `seed.py` sent. Links are made last, so nothing is ever written through one.

    Raises EOFError for a stream that was cut, OSError."""
    root = -1
    times: list[tuple[int, bytes, int, int]] = []
    links: list[tuple[int, bytes, bytes, int]] = []
    while True:
        kind, mode, mtime, length, size = HEADER.unpack(_exactly(read, HEADER.size))
        path = _exactly(read, length)
        if kind == END:
            break
        if kind == TARGET:
            root = roots[path]
        elif kind == DIRECTORY:
            if path != b".":
                os.mkdir(path, 0o700, dir_fd=root)
            times.append((root, path, mode, mtime))
        elif kind == FILE:
            _write_file(read, root, path, mode, mtime, size)
        elif kind == LINK:
            links.append((root, path, _exactly(read, size), mtime))
    for root, path, target, mtime in links:
        os.symlink(target, path, dir_fd=root)
        os.utime(path, ns=(mtime, mtime), dir_fd=root, follow_symlinks=False)
    for root, path, mode, mtime in reversed(times):
        if path != b".":
            os.chmod(path, mode, dir_fd=root)
        os.utime(path, ns=(mtime, mtime), dir_fd=root)


def _write_file(read: Callable[[int], bytes], root: int, path: bytes, mode: int, mtime: int, size: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=root)
    with open(fd, "wb", buffering=0) as file:  # noqa: PTH123
        while size:
            piece = _exactly(read, min(size, 1 << 20))
            size -= len(piece)
            while piece:
                piece = piece[file.write(piece) :]
        os.fchmod(fd, mode)
        os.utime(fd, ns=(mtime, mtime))


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise EOFError
    return bytes(data)
