"""The only place that opens files somebody else wrote: pack assets and what an agent left behind.

Paths are walked one component at a time from a directory descriptor, never following a link and never
leaving the device, so neither a link nor a swap during the walk leads anywhere else."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from securebench._canonical import digest_value
from securebench._paths import relative_path

CHUNK = 1024 * 1024
MAX_DEPTH = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafeEntry(ValueError):
    """An entry that is missing, is not what it must be, or leads elsewhere. The message names the rule."""


class Missing(UnsafeEntry):
    """There is nothing of that name."""


class TooLarge(UnsafeEntry):
    """There is more than the budget allows."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A regular file or a directory met during a walk; `path` is relative to where the walk began."""

    path: PurePosixPath
    is_dir: bool
    size: int
    executable: bool
    descriptor: int


@contextmanager
def open_directory(path: Path) -> Iterator[int]:
    """A descriptor on a directory the operator named; links on the way are the operator's own."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_named(path: Path) -> Iterator[BinaryIO]:
    """A regular file the operator named. Raises OSError, also for a FIFO, on which opening would wait for ever."""
    descriptor = os.open(path, _FILE & ~os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


@contextmanager
def open_beneath(root: int, path: PurePosixPath) -> Iterator[int]:
    """A descriptor on the regular file or directory at `path` beneath `root`. Raises UnsafeEntry.

    The caller must have parsed `path` with `_paths.relative_path`: it has no `..` and is not absolute."""
    device = os.fstat(root).st_dev
    descriptor = os.dup(root)
    try:
        for part in path.parts:
            following = _open_entry(descriptor, part, path)
            os.close(descriptor)
            descriptor = following
            if os.fstat(descriptor).st_dev != device:
                raise UnsafeEntry(f"{path} lies on another file system")
        yield descriptor
    finally:
        os.close(descriptor)


def _open_entry(directory: int, name: str, shown: PurePosixPath) -> int:
    try:
        # lstat before open: opening a device or FIFO can have side effects even without blocking.
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise UnsafeEntry(f"{shown} is or passes through a symbolic link")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UnsafeEntry(f"{shown} is neither a regular file nor a directory")
        descriptor = os.open(name, _DIRECTORY if stat.S_ISDIR(mode) else _FILE, dir_fd=directory)
    except FileNotFoundError as error:
        raise Missing(f"{shown} does not exist") from error
    except OSError as error:
        raise UnsafeEntry(f"{shown} {_REASONS.get(error.errno or 0, os.strerror(error.errno or 0))}") from error
    opened = os.fstat(descriptor).st_mode
    if stat.S_IFMT(opened) != stat.S_IFMT(mode):
        os.close(descriptor)
        raise UnsafeEntry(f"{shown} changed while it was opened")
    return descriptor


_REASONS = {
    errno.ENOTDIR: "passes through something that is not a directory",
    errno.ELOOP: "is or passes through a symbolic link",
    errno.EACCES: "cannot be read (permission denied)",
}


def read_bounded(descriptor: int, limit: int, shown: str) -> bytes:
    """The whole of a regular file. Raises UnsafeEntry when it is not one or holds more than `limit` bytes."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeEntry(f"{shown} is not a regular file")
    if status.st_size > limit:
        raise TooLarge(f"{shown} has {status.st_size} bytes; at most {limit} are allowed")
    data = bytearray()
    while chunk := os.read(descriptor, min(CHUNK, limit + 1 - len(data))):
        data += chunk
        if len(data) > limit:
            raise TooLarge(f"{shown} grew beyond {limit} bytes while it was read")
    return bytes(data)


def walk(root: int, path: PurePosixPath, max_entries: int) -> Iterator[Entry]:
    """Every file and directory at and beneath `path`, in stable order, each with an open descriptor that is
    valid until the next step. Raises UnsafeEntry for anything else it meets, and beyond `max_entries`."""
    budget = [max_entries]
    with open_beneath(root, path) as top:
        yield from _walk(top, PurePosixPath(), path, budget, os.fstat(top).st_dev)


def _walk(
    descriptor: int, inner: PurePosixPath, shown: PurePosixPath, budget: list[int], device: int
) -> Iterator[Entry]:
    budget[0] -= 1
    if budget[0] < 0:
        raise TooLarge(f"{shown} makes too many files")
    if len(inner.parts) > MAX_DEPTH:
        raise TooLarge(f"{shown} is nested too deeply")
    status = os.fstat(descriptor)
    if status.st_dev != device:
        raise UnsafeEntry(f"{shown} lies on another file system")
    is_dir = stat.S_ISDIR(status.st_mode)
    yield Entry(inner, is_dir, status.st_size, bool(status.st_mode & 0o111), descriptor)
    if is_dir:
        for name in sorted(os.listdir(descriptor), key=os.fsencode):
            try:
                relative_path(name)
            except ValueError as error:
                raise UnsafeEntry(f"{shown} holds the name {name!a}: {error}") from None
            child = _open_entry(descriptor, name, shown / name)
            try:
                yield from _walk(child, inner / name, shown / name, budget, device)
            finally:
                os.close(child)


def entries_in(descriptor: int, most: int) -> list[tuple[str, int]]:
    """The names in a directory with their modes, in stable order; nothing is opened or followed. Raises TooLarge."""
    names = os.listdir(descriptor)
    if len(names) > most:
        raise TooLarge(f"holds {len(names)} entries; at most {most} are allowed")
    found = []
    for name in sorted(names, key=os.fsencode):
        with suppress(FileNotFoundError):
            found.append((name, os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode))
    return found


def tree_digest(root: int, path: PurePosixPath, max_entries: int, max_bytes: int) -> str:
    """Pins names, kinds, the executable bit and the bytes of a file or tree."""
    lines: list[list[object]] = []
    total = 0
    for entry in walk(root, path, max_entries):
        if entry.is_dir:
            lines.append([str(entry.path), "dir"])
            continue
        total += entry.size
        if total > max_bytes:
            raise TooLarge(f"{path} holds more than {max_bytes} bytes")
        sha = hashlib.sha256()
        while chunk := os.read(entry.descriptor, CHUNK):
            sha.update(chunk)
        lines.append([str(entry.path), "exec" if entry.executable else "file", sha.hexdigest()])
    return digest_value(lines)


def write_new(directory: int, path: PurePosixPath, data: bytes | int, mode: int) -> int:
    """Create a file beneath `directory`, from bytes or from an open descriptor; returns the bytes written.

    Parent directories are made as needed; an existing file is an error."""
    with make_directories(directory, path.parent) as parent:
        descriptor = os.open(path.name, _WRITE, 0o600, dir_fd=parent)
        try:
            written = 0
            for chunk in [data] if isinstance(data, bytes) else _chunks(data):
                view = memoryview(chunk)
                while view:
                    count = os.write(descriptor, view)
                    view = view[count:]
                    written += count
            os.fchmod(descriptor, mode)
            os.utime(descriptor, ns=(EPOCH_NS, EPOCH_NS))
        finally:
            os.close(descriptor)
    return written


EPOCH_NS = 1_000_000_000 * 1_000_000_000  # one fixed time for everything an agent can see


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, CHUNK):
        yield chunk


@contextmanager
def make_directories(root: int, path: PurePosixPath) -> Iterator[int]:
    """A descriptor on the directory at `path` beneath `root`, made where it does not exist."""
    if path.is_absolute() or ".." in path.parts:
        raise UnsafeEntry(f"{path} does not stay beneath its root")
    descriptor = os.dup(root)
    try:
        for part in path.parts:
            made = _make_directory(descriptor, part)
            following = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
            if made:
                os.fchmod(descriptor, 0o755)  # whatever the umask is
        yield descriptor
    finally:
        os.close(descriptor)


def _make_directory(parent: int, name: str) -> bool:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def settle_times(root: Path) -> None:
    """Give every directory of a tree we just built the one fixed time."""
    for parent, _, _ in os.walk(root, topdown=False):
        os.utime(parent, ns=(EPOCH_NS, EPOCH_NS))
