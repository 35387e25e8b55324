"""What every layout gives: pieces. One piece is one sample as a line of JSON, with the place it comes from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, Protocol

from securebench import _json
from securebench.errors import ConfigError, Problem

MAX_LINE = 16 * 2**20
MAX_BYTES = 64 * 2**30
MAX_SAMPLES = 10_000_000
CHUNK = 1 << 20


class Piece(NamedTuple):
    """One sample. `place` and `line` are for people; `order` is among the samples of its task, and those of the same
    order stay as they came; `offset` is that of its data in the reading's file."""

    place: str
    line: int
    order: int
    offset: int
    data: bytes


class Reading(Protocol):
    """One layout of one source: its pieces, once, and then its digest."""

    @property
    def file(self) -> BinaryIO:
        """Where the data of pieces can be read again."""
        ...

    @property
    def digest(self) -> str:
        """Of the source, when all pieces were read."""
        ...

    def pieces(self) -> Iterator[Piece | Problem]: ...


class Spool:
    """Samples of another layout, written down as lines in a file without a name anywhere."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self._name = name
        self._size = 0

    def piece(self, sample: Mapping[str, Any], place: str, line: int = 0, order: int = 0) -> Piece | Problem:
        """A problem where it is longer than a line may be. Raises ConfigError where all of them are."""
        data = _json.dumps(sample).encode()
        if len(data) > MAX_LINE:
            return Problem(place, line, "", f"is longer than {MAX_LINE} bytes")
        offset, self._size = self._size, self._size + len(data)
        if self._size > MAX_BYTES:
            raise ConfigError([Problem(self._name, 0, "", f"holds more than {MAX_BYTES} bytes of samples")])
        self.file.write(data)
        return Piece(place, line, order, offset, data)


@contextmanager
def open_spool(name: str) -> Iterator[Spool]:
    with tempfile.TemporaryFile() as file:
        yield Spool(file, name)
