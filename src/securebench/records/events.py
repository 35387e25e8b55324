"""`events.jsonl`: what happened in a run and when, one JSON line per event, agents' output left out.

It is a journal, not evidence: lines are flushed, so that a killed engine loses none, but not synced. A resumed run
reads from it which agents had been started and never came to a record."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from securebench import _json
from securebench._fs import open_named
from securebench.errors import StoreError
from securebench.progress import Event, ProgressEvent

EVENTS_FILE = "events.jsonl"
MAX_EVENT = 16 * 1024
_LONGEST_TEXT = 512
_NOT_KEPT = frozenset({Event.PRODUCER_OUTPUT})


class EventLog:
    """A listener that writes every event to the file. Use as a context manager; appends to what is there.

    Raises StoreError when the file cannot be opened; from then on OSError, which `Unbreakable` takes for the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def __enter__(self) -> EventLog:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        try:
            self._file = os.open(self.path, flags, 0o644)
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise StoreError(f"{self.path}: not a regular file")
            self._end_torn_line()
        except OSError as error:
            self.__exit__()
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from error
        except StoreError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __call__(self, event: ProgressEvent) -> None:
        if event.event not in _NOT_KEPT and self._file >= 0:
            line = encode_event(event)
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _end_torn_line(self) -> None:
        """So that the first line of this start is not glued to half a line of the last."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")


def encode_event(event: ProgressEvent) -> bytes:
    """One line of at most `MAX_EVENT` bytes; what is too long in it is cut, and then it says so."""
    value = event.as_json()
    line = (_json.dumps(value) + "\n").encode()
    if len(line) <= MAX_EVENT:
        return line
    kept: dict[str, Any] = {name: value[name] for name in ("event", "time", "task_id", "attempt") if name in value}
    for name, item in value.items():
        if name not in kept and isinstance(item, str | int | float | bool | None):
            kept[name] = item[:_LONGEST_TEXT] if isinstance(item, str) else item
    line = (_json.dumps(kept | {"cut": True}) + "\n").encode()
    if len(line) <= MAX_EVENT:
        return line
    place = {name: kept[name] for name in ("event", "time", "task_id", "attempt") if name in kept}
    return (_json.dumps(place | {"cut": True}) + "\n").encode()


def started_attempts(path: Path) -> Counter[tuple[str, int]]:
    """How often the agent of each attempt was started, by task id and attempt.

    Lines that make no sense are passed over: an engine may have been killed while it wrote one. Raises StoreError
    when there is a file and it cannot be read."""
    return Counter(key for event, key in _read(path) if event == Event.AGENT_STARTED)


def lost_starts(path: Path) -> Counter[tuple[str, int]]:
    """The starts of agents that came to no record: what killed engines lost. Reads as `started_attempts` does."""
    lost: Counter[tuple[str, int]] = Counter()
    for event, key in _read(path):
        if event == Event.AGENT_STARTED:
            lost[key] += 1
        else:
            lost[key] = max(0, lost[key] - 1)
    return +lost


_TOLD = {event.value: event.value.encode() for event in (Event.AGENT_STARTED, Event.RECORD_WRITTEN)}


def _read(path: Path) -> Iterator[tuple[str, tuple[str, int]]]:
    try:
        with open_named(path) as file:  # a FIFO in a stranger's run directory must not hold us up
            while line := file.readline(MAX_EVENT):
                # Parsing only these keeps the journal of a long run readable in a second.
                if any(name in line for name in _TOLD.values()) and (found := _parse(line)):
                    yield found
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _parse(line: bytes) -> tuple[str, tuple[str, int]] | None:
    try:
        value: Any = _json.loads(line)
    except _json.JsonError:
        return None
    if not isinstance(value, dict) or not line.endswith(b"\n"):
        return None
    event, task, attempt = value.get("event"), value.get("task_id"), value.get("attempt")
    if not isinstance(event, str) or event not in _TOLD:
        return None
    if not isinstance(task, str) or not isinstance(attempt, int) or isinstance(attempt, bool):
        return None
    return event, (task, attempt)
