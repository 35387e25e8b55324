"""Compressed bytes, unpacked under limits into a file without a name, so that nobody else can open it and nothing
stays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO

from securebench._fs import CHUNK, UnsafeEntry
from securebench.errors import ConfigError
from securebench.images._streams import Blob, LayerStream, compression_of
from securebench.images.budget import Budget, ImportLimits
from securebench.importers.sources.base import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES

LIMITS = ImportLimits(members=MAX_FILES, file_bytes=MAX_FILE_BYTES, total_bytes=MAX_TOTAL_BYTES)


def new_budget() -> Budget:
    return Budget(LIMITS, "the source")


def temporary() -> AbstractContextManager[BinaryIO]:
    """An empty file that has no name and is gone when it is closed."""
    return tempfile.TemporaryFile()


def blob_of(file: BinaryIO) -> Blob:
    """All of an open file that is on disk."""
    return Blob(file.fileno(), 0, os.fstat(file.fileno()).st_size)


@contextmanager
def unpacked(file: BinaryIO, shown: str) -> Iterator[BinaryIO]:
    """The bytes of an open file, without the compression that its first bytes announce; the file itself where there
    is none. Raises ConfigError for damaged or exploding data."""
    with decompressed(blob_of(file), shown) as plain:
        if plain is not None:
            yield plain
            return
    file.seek(0)
    yield file


@contextmanager
def decompressed(blob: Blob, shown: str) -> Iterator[BinaryIO | None]:
    """The unpacked bytes of a blob; None where they are not compressed. Raises ConfigError."""
    try:
        if compression_of(blob.read_at(0, 8)) is None:
            yield None
            return
        with temporary() as file:
            stream = LayerStream(blob, new_budget())
            while chunk := stream.some(CHUNK):
                file.write(chunk)
            file.flush()
            file.seek(0)
            yield file
    except UnsafeEntry as error:
        raise ConfigError(f"{shown}: {error}") from error
