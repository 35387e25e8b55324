"""A source as formats see it: files by name, read under limits, and what is known of where they come from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import BinaryIO

from securebench.errors import ConfigError

MIB = 2**20
MAX_FILES = 200_000
MAX_FILE_BYTES = 16 * 2**30
MAX_TOTAL_BYTES = 64 * 2**30
LEFT_OUT = frozenset({".git"})
"""Directories that are no part of a data set, wherever they lie."""

Opener = Callable[[], AbstractContextManager[BinaryIO]]
"""Gives the bytes of a file, seekable and with a descriptor, at their beginning."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source. `path` is relative, with `/`, and safe to be shown; bytes are as they are stored."""

    path: str
    size: int
    executable: bool
    _open: Opener

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Its bytes, seekable, at their beginning, valid inside the `with`. Raises ConfigError."""
        return self._open()

    def read(self, limit: int = 64 * MIB) -> bytes:
        """All its bytes. Raises ConfigError where there are more than `limit`."""
        with self.open() as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise ConfigError(f"{self.path}: has more than {limit} bytes")
        return data


@dataclass(frozen=True, slots=True)
class Source:
    """Files in a stable order, and what is known of where they come from.

    `digest` is that of a file's own bytes, as `sha256sum` prints it, or of the names, modes and bytes of many."""

    name: str
    digest: str
    files: tuple[SourceFile, ...]
    licence: str | None = None
    url: str | None = None
    revision: str | None = None
    only: tuple[str, ...] = ()  # the patterns by which its files were chosen

    def file(self, path: str) -> SourceFile | None:
        return next((file for file in self.files if file.path == path), None)

    def matching(self, *patterns: str) -> tuple[SourceFile, ...]:
        """The files whose path, or whose name alone, matches one of the patterns (`*.jsonl`, `test/*.csv`)."""
        return tuple(file for file in self.files if matches(file.path, patterns))


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, one) or fnmatchcase(path.rpartition("/")[2], one) for one in patterns)
