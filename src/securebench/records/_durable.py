"""Bytes that are on disk when the call returns: written whole, synced, and visible under their name or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from securebench.errors import IntegrityError, StoreError


def write_all(descriptor: int, data: bytes) -> None:
    """Write and sync. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make names that were added to a directory last. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """A new file with these bytes; a reader sees all of them or no file. Raises FileExistsError, StoreError."""
    with _errors(path, FileExistsError), _temporary(path, data, mode) as temporary:
        os.link(temporary, path)  # unlike a rename it never replaces
        temporary.unlink()
        sync_directory(path.parent)


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """The file with these bytes, in one step: a reader sees the old or the new ones. Raises StoreError."""
    with _errors(path), _temporary(path, data, mode) as temporary:
        temporary.replace(path)
        sync_directory(path.parent)


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file of lines. What a crash left of an earlier one is cut off first. Raises StoreError."""
    with _errors(path):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
        try:
            end = end_of_last_line(descriptor, os.fstat(descriptor).st_size)
            os.ftruncate(descriptor, end)
            try:
                write_all(descriptor, line)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)
        sync_directory(path.parent)


def end_of_last_line(descriptor: int, size: int) -> int:
    """The offset just behind the last newline of the first `size` bytes."""
    position = size
    while position > 0:
        start = max(0, position - 65536)
        found = os.pread(descriptor, position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def read_file(path: Path, limit: int) -> bytes:
    """A whole regular file of at most `limit` bytes. Raises FileNotFoundError, StoreError, IntegrityError."""
    from securebench._fs import TooLarge, UnsafeEntry, read_bounded

    with _errors(path, FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return read_bounded(descriptor, limit, path.name)
        except (UnsafeEntry, TooLarge) as error:
            raise IntegrityError(f"{path}: {error}") from error
        finally:
            os.close(descriptor)


@contextmanager
def _temporary(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)  # of an earlier process; the run directory has one writer
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _errors(path: Path, *expected: type[OSError]) -> Iterator[None]:
    try:
        yield
    except expected:
        raise
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
