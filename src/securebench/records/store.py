"""`candidates.jsonl`: one line per attempt, appended, synced, chained, never rewritten.

Each line carries the digest of the exact bytes of the line before it, the first one that of the plan. A crash can
leave half a line at the end; the next start moves it into a file of its own, says so, and every complete line stays.

Lines that wait while others are synced are written and synced together: the file's order is the order of the calls,
and a line is acknowledged only when it is on disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from securebench import _json
from securebench._canonical import digest_bytes
from securebench._fs import open_named
from securebench.errors import IntegrityError, StoreError
from securebench.records._durable import end_of_last_line, sync_directory, write_all

RECORDS_FILE = "candidates.jsonl"
LOCK_FILE = ".lock"
MAX_LINE = 64 * 2**20
_AS_IT_IS = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
"""A link in a stranger's run directory must not lead us to write elsewhere, nor a FIFO hold us up."""
_LINK = b',"previous":"%s"}\n'
_LINK_SIZE = len(_LINK % digest_bytes(b"").encode())


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


@dataclass(frozen=True, slots=True)
class ChainState:
    """How far the records have come: what a checkpoint or a seal is about."""

    head: str  # digest of the last line, of the plan where there is none
    count: int
    size: int  # bytes
    sha256: str  # hex, of all `size` bytes


@dataclass(slots=True)
class _Waiting:
    """A line somebody waits for."""

    body: bytes
    turn: anyio.Event = field(default_factory=anyio.Event)
    done: bool = False
    error: StoreError | None = None


class RecordStore:
    """The one writer of a run directory. Use as a context manager; holds the directory's lock.

    Call `begin` with the plan's digest, read `records` to their end where there are any, then `append`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / RECORDS_FILE
        self.repair: Repair | None = None
        self._start: str | None = None
        self._state: ChainState | None = None  # unknown until what is there has been read
        self._sha = hashlib.sha256()
        self._size = 0
        self._lock = -1
        self._file = -1
        self._queue: list[_Waiting] = []
        self._writing = False
        self._commits = threading.Lock()
        self._broken: str | None = None

    def __enter__(self) -> RecordStore:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.directory)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _AS_IT_IS, 0o644)
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise StoreError(f"{self.path}: not a regular file")
            sync_directory(self.directory)
            self.repair = self._set_torn_tail_aside()
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            self.__exit__()
            raise StoreError(f"{self.directory}: cannot be used as a run directory: {error.strerror}") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._commits:  # a write whose caller was torn away ends before its file is closed
            for descriptor in (self._file, self._lock):
                if descriptor >= 0:
                    os.close(descriptor)
            self._file = self._lock = -1

    def begin(self, head: str) -> None:
        """Say where the chain starts: the digest of the run's plan. Once, before anything is read or appended."""
        if self._start is not None:
            raise StoreError(f"{self.path}: the chain has begun already")
        self._start = head
        if self._size == 0:
            self._state = ChainState(head, 0, 0, self._sha.hexdigest())

    @property
    def state(self) -> ChainState:
        """What is on disk and acknowledged. Raises StoreError before what is there was read and checked."""
        if self._state is None:
            raise StoreError(f"{self.path}: holds records that have not been read and checked")
        return self._state

    @property
    def head(self) -> str:
        return self.state.head

    @property
    def count(self) -> int:
        return self.state.count

    @property
    def size(self) -> int:
        return self.state.size

    def records(self) -> Iterator[dict[str, Any]]:
        """Every record, after checking its place in the chain. Raises IntegrityError naming the line.

        Must be read to the end before the first `append`."""
        if self._start is None:
            raise StoreError(f"{self.path}: where the chain begins was not said")
        head, sha, number = self._start, hashlib.sha256(), 0
        size = self._size if self._state is None else self._state.size
        for number, line, record in read_records(self.path, size):
            if record.get("previous") != head:
                raise IntegrityError(f"{self.path}:{number}: {out_of_chain(number)}")
            head = digest_bytes(line)
            sha.update(line)
            yield record
        if self._state is None:
            self._sha = sha
            self._state = ChainState(head, number, size, sha.hexdigest())

    async def append(self, record: dict[str, Any]) -> None:
        """Write one line; returns when it is on disk. Cancelling does not keep it from being written.

        Raises StoreError; then no line of those written together is there."""
        await self.append_encoded(encode_record(record))

    async def append_encoded(self, body: bytes) -> None:
        """`append` for what `encode_record` made."""
        _ = self.state
        if (size := line_size(body)) > MAX_LINE:
            raise StoreError(f"{self.path}: a record of {size} bytes is too large; at most {MAX_LINE} are allowed")
        line = _Waiting(body)
        self._queue.append(line)
        with anyio.CancelScope(shield=True):  # an attempt that is done is recorded, whatever happens meanwhile
            if self._writing:
                await line.turn.wait()
            if not line.done:
                await self._write_what_waits()
        if line.error is not None:
            raise line.error

    async def _write_what_waits(self) -> None:
        """Whoever waits first writes for all; then the first of those who came meanwhile does."""
        self._writing = True
        batch, self._queue = self._queue, []
        error: StoreError | None = StoreError(f"{self.path}: records were not written: interrupted")
        try:
            error = await anyio.to_thread.run_sync(
                self._commit, [line.body for line in batch], limiter=anyio.CapacityLimiter(1)
            )
        finally:
            for line in batch:
                line.done, line.error = True, error
                line.turn.set()
            self._writing = bool(self._queue)
            if self._queue:
                self._queue[0].turn.set()

    def _commit(self, bodies: list[bytes]) -> StoreError | None:
        """Chain, write and sync; all of them or none. Runs in a thread of its own."""
        with self._commits:
            if self._broken is not None or self._file < 0:
                return StoreError(f"{self.path}: records can no longer be written: {self._broken or 'closed'}")
            before = self.state
            head, lines, sha = before.head, [], self._sha.copy()
            for body in bodies:
                line = body + _LINK % head.encode()
                head = digest_bytes(line)
                lines.append(line)
                sha.update(line)
            data = b"".join(lines)
            try:
                write_all(self._file, data)
            except OSError as error:
                self._take_back(before.size)
                return StoreError(f"{self.path}: record could not be written: {error.strerror}")
            if os.fstat(self._file).st_nlink == 0:
                self._broken = "the file was removed"
                return StoreError(f"{self.path}: was removed while records were written")
            self._sha = sha
            self._state = ChainState(head, before.count + len(lines), before.size + len(data), sha.hexdigest())
            return None

    def _take_back(self, size: int) -> None:
        try:
            os.ftruncate(self._file, size)
            os.fsync(self._file)
        except OSError as error:
            # Lines nobody was told of may stay; going on behind them would break the chain.
            self._broken = f"what failed could not be taken back ({error.strerror})"

    def _set_torn_tail_aside(self) -> Repair | None:
        size = os.fstat(self._file).st_size
        keep = end_of_last_line(self._file, size)
        if keep == size:
            return None
        if size - keep > MAX_LINE:
            raise IntegrityError(f"{self.path}: ends in {size - keep} bytes without a line end; not a torn record")
        tail = os.pread(self._file, size - keep, keep)
        kept_in = _free_name(self.path.with_name(f"{RECORDS_FILE}.torn-{keep}"))
        descriptor = os.open(kept_in, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            write_all(descriptor, tail)
        finally:
            os.close(descriptor)
        sync_directory(self.directory)
        os.ftruncate(self._file, keep)
        os.fsync(self._file)
        return Repair(size - keep, kept_in)


def out_of_chain(number: int) -> str:
    """What is wrong with a line whose `previous` is not the digest of what stands before it."""
    if number == 1:
        return "is not the first record of this plan; the plan or the line was changed, or lines before it are gone"
    return "does not follow the line before it; a line was changed, dropped, inserted or moved"


def read_records(path: Path, size: int | None = None) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Line number, exact bytes and content of every complete record, of the first `size` bytes where given.
    Raises IntegrityError for anything else."""
    for number, line in read_lines(path, size):
        try:
            record = _json.loads(line)
        except _json.JsonError as error:
            raise IntegrityError(f"{path}:{number}: {error}") from error
        if not line.endswith(b"\n") or not isinstance(record, dict):
            raise IntegrityError(f"{path}:{number}: not a complete record")
        yield number, line, record


def read_lines(path: Path, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Number and exact bytes of every line, of the first `size` bytes where given. Raises StoreError."""
    try:
        with open_named(path) as file:  # a FIFO in a stranger's run directory must not hold us up
            left = os.fstat(file.fileno()).st_size if size is None else size
            for number in count(1):
                line = file.readline(min(MAX_LINE, left))
                if not line:
                    return
                left -= len(line)
                yield number, line
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def encode_record(record: dict[str, Any]) -> bytes:
    """The line without its end, which only the writer knows: a record cannot choose its place in the chain. Raises
    what encoding raises for what is no JSON."""
    rest = {key: value for key, value in record.items() if key != "previous"}
    if not rest:
        raise StoreError("an empty record")
    return _json.dumps(rest)[:-1].encode()


def line_size(body: bytes) -> int:
    """How many bytes the line of an encoded record will have."""
    return len(body) + _LINK_SIZE


def _free_name(path: Path) -> Path:
    """`path`, or the first of `path.1`, `path.2`, … that does not exist: nothing set aside is overwritten."""
    names = chain([path], (path.with_name(f"{path.name}.{number}") for number in count(1)))
    return next(name for name in names if not os.path.lexists(name))


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | _AS_IT_IS, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreError(f"{directory}: another securebench process is writing to this run directory") from None
    return descriptor
