"""Files of run directories, read as a stranger's: no link is followed, nothing but regular files is opened, and no
more is read than was asked for."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

from securebench._fs import UnsafeEntry, open_beneath, open_directory, read_bounded
from securebench.records.files import RUN_DIRECTORIES, RUN_FILES
from securebench.records.store import RECORDS_FILE

MOST_RECORDS = 2 * 2**30
_COUNTED, _PIECE = 256 * 2**20, 2**20
_LATEST = 253_402_300_799.0  # the last second that has a date


def read_small(directory: Path, name: str, limit: int) -> bytes | None:
    """A file of at most `limit` bytes; None where there is none, or something else."""
    try:
        with open_directory(directory) as root, open_beneath(root, PurePosixPath(name)) as descriptor:
            return read_bounded(descriptor, limit, name)
    except (OSError, UnsafeEntry):
        return None


def read_part(directory: Path, name: str, size: int, *, end: bool = False) -> bytes:
    """The first `size` bytes of a file, or the last; nothing where there is none."""
    try:
        with open_directory(directory) as root, open_beneath(root, PurePosixPath(name)) as descriptor:
            length = os.fstat(descriptor).st_size
            return os.pread(descriptor, size, max(0, length - size) if end else 0)
    except (OSError, UnsafeEntry):
        return b""


def problem(directory: Path) -> str | None:
    """Why a run is not opened: something in it that leads elsewhere or is no file, or more records than fit."""
    try:
        for name in (*RUN_FILES, *RUN_DIRECTORIES):
            kind = stat.S_ISDIR if name in RUN_DIRECTORIES else stat.S_ISREG
            if (status := _status(directory / name)) is not None and not kind(status.st_mode):
                what = "a link" if stat.S_ISLNK(status.st_mode) else "not what it should be"
                return f"{name} is {what}; a run's own files are plain ones"
            if name == RECORDS_FILE and status is not None and status.st_size > MOST_RECORDS:
                return f"{name} has {status.st_size:,} bytes, too many to show; try `securebench query`"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


def signature(directory: Path) -> tuple[tuple[int, int, int], ...]:
    """Changes whenever one of the run's own files does."""
    found = [_status(directory / name) for name in RUN_FILES]
    return tuple((one.st_ino, one.st_size, one.st_ctime_ns) if one else (0, 0, 0) for one in found)


def full_signature(directory: Path) -> tuple[object, ...]:
    """Changes whenever anything that verifying it reads does, the stored candidates and audits too."""
    stored = hashlib.sha256()
    for name in RUN_DIRECTORIES:
        for place, directories, files in os.walk(directory / name):
            directories.sort()
            for file in sorted(files):
                path = os.path.join(place, file)  # noqa: PTH118 - there can be very many
                with suppress(OSError):
                    one = os.lstat(path)
                    stored.update(repr((path, one.st_ino, one.st_size, one.st_ctime_ns)).encode("utf-8", "replace"))
    return (*signature(directory), stored.digest())


def count_lines(directory: Path, name: str) -> int:
    """How many complete lines a file has; of a very large one, those in its first part."""
    count = 0
    try:
        with open_directory(directory) as root, open_beneath(root, PurePosixPath(name)) as descriptor:
            for offset in range(0, _COUNTED, _PIECE):
                piece = os.pread(descriptor, _PIECE, offset)
                count += piece.count(b"\n")
                if len(piece) < _PIECE:
                    break
    except (OSError, UnsafeEntry):
        return 0
    return count


def modified(directory: Path) -> float:
    """When anything was last written to it, as its files say: an archive can give them any time."""
    found = [_status(directory / name) for name in RUN_FILES]
    return min(_LATEST, max((one.st_mtime for one in found if one and one.st_mtime > 0), default=0.0))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
