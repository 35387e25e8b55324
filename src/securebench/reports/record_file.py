"""Single records of a run, in any order: where each line ends is learned once, and a line is read when asked for.

Reports tell attempts task by task, and records stand in the order in which attempts ended."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from securebench._fs import open_named
from securebench.errors import StoreError
from securebench.records.store import MAX_LINE, RECORDS_FILE

_CHUNK = 4 * 2**20


class RecordFile:
    """The lines of `candidates.jsonl` as it was when it was opened."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ends = _line_ends(file)

    def record(self, line: int) -> dict[str, Any] | None:
        """The record on a line, counted from 1; None where it is none any more."""
        if not 1 <= line <= len(self._ends):
            return None
        start = self._ends[line - 2] if line > 1 else 0
        if (size := self._ends[line - 1] - start) > MAX_LINE:
            return None
        try:
            # It was read strictly when it was checked; read again to be shown, it need not be, which takes a third.
            value = json.loads(os.pread(self._file.fileno(), size, start))
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


@contextmanager
def open_records(directory: Path) -> Iterator[RecordFile]:
    """Raises StoreError."""
    path = directory / RECORDS_FILE
    try:
        with open_named(path) as file:
            yield RecordFile(file)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _line_ends(file: BinaryIO) -> array[int]:
    """The offsets behind every line end."""
    ends, offset = array("q"), 0
    while chunk := file.read(_CHUNK):
        place = chunk.find(b"\n")
        while place >= 0:
            ends.append(offset + place + 1)
            place = chunk.find(b"\n", place + 1)
        offset += len(chunk)
    return ends
