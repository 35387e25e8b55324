"""`candidates.jsonl`: one line per attempt, appended, synced, chained, never rewritten.

Each line carries the digest of the exact bytes of the line before it. A crash can leave half a line at the end;
the next start moves it into a file of its own, says so, and every complete line stays."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from securebench import _json
from securebench._canonical import digest_bytes
from securebench.errors import IntegrityError, StoreError

RECORDS_FILE = "candidates.jsonl"
LOCK_FILE = ".lock"
CHAIN_START = digest_bytes(b"")
MAX_LINE = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Repair:
    """A torn tail that was set aside, so that nothing is dropped silently."""

    bytes: int
    kept_in: Path

    def __str__(self) -> str:
        return (
            f"the last line of {RECORDS_FILE} was incomplete ({self.bytes} bytes, left by an interrupted write); "
            f"moved to {self.kept_in.name}, all complete records kept"
        )


class RecordStore:
    """The one writer of a run directory. Use as a context manager; holds the directory's lock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / RECORDS_FILE
        self.repair: Repair | None = None
        self._head: str | None = None  # unknown until what is there has been read
        self._lock = -1
        self._file = -1

    def __enter__(self) -> RecordStore:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.directory)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise StoreError(f"{self.path}: not a regular file")
            _sync_directory(self.directory)
            self.repair = self._set_torn_tail_aside()
            self._head = CHAIN_START if os.fstat(self._file).st_size == 0 else None
        except OSError as error:
            self.__exit__()
            raise StoreError(f"{self.directory}: cannot be used as a run directory: {error.strerror}") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1

    def records(self) -> Iterator[dict[str, Any]]:
        """Every record, after checking its place in the chain. Raises IntegrityError naming the line.

        Must be read to the end before the first `append`."""
        head = CHAIN_START
        for line_number, line, record in read_records(self.path):
            if record.get("previous") != head:
                raise IntegrityError(
                    f"{self.path}:{line_number}: does not follow the line before it; a line was changed, "
                    "dropped, inserted or moved"
                )
            head = digest_bytes(line)
            yield record
        self._head = head

    def append(self, record: dict[str, Any]) -> None:
        """Write one line and sync it. Raises StoreError; a line that did not fit is taken back."""
        if self._head is None:
            raise StoreError(f"{self.path}: holds records that have not been read and checked")
        line = (_json.dumps(record | {"previous": self._head}) + "\n").encode()
        if len(line) > MAX_LINE:
            raise StoreError(f"{self.path}: a record of {len(line)} bytes is too large; at most {MAX_LINE} are allowed")
        size = os.fstat(self._file).st_size
        try:
            _write_all(self._file, line)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            raise StoreError(f"{self.path}: record could not be written: {error.strerror}") from error
        self._head = digest_bytes(line)

    def _set_torn_tail_aside(self) -> Repair | None:
        size = os.fstat(self._file).st_size
        keep = _end_of_last_line(self._file, size)
        if keep == size:
            return None
        if size - keep > MAX_LINE:
            raise IntegrityError(f"{self.path}: ends in {size - keep} bytes without a line end; not a torn record")
        tail = os.pread(self._file, size - keep, keep)
        kept_in = _free_name(self.path.with_name(f"{RECORDS_FILE}.torn-{keep}"))
        descriptor = os.open(kept_in, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            _write_all(descriptor, tail)
        finally:
            os.close(descriptor)
        _sync_directory(self.directory)
        os.ftruncate(self._file, keep)
        os.fsync(self._file)
        return Repair(size - keep, kept_in)


def read_records(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Line number, exact bytes and content of every complete record. Raises IntegrityError for anything else."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE):
                number += 1
                try:
                    record = _json.loads(line)
                except _json.JsonError as error:
                    raise IntegrityError(f"{path}:{number}: {error}") from error
                if not line.endswith(b"\n") or not isinstance(record, dict):
                    raise IntegrityError(f"{path}:{number}: not a complete record")
                yield number, line, record
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _free_name(path: Path) -> Path:
    """`path`, or the first of `path.1`, `path.2`, … that does not exist: nothing set aside is overwritten."""
    names = chain([path], (path.with_name(f"{path.name}.{number}") for number in count(1)))
    return next(name for name in names if not os.path.lexists(name))


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreError(f"{directory}: another securebench process is writing to this run directory") from None
    return descriptor


def _end_of_last_line(descriptor: int, size: int) -> int:
    """The offset just behind the last newline."""
    position = size
    while position > 0:
        start = max(0, position - 65536)
        found = os.pread(descriptor, position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
