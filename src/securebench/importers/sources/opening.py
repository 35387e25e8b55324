"""From what a person typed to a source: is it a file, a directory, an archive, or a data set on a hub?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from securebench import _fs
from securebench._canonical import digest_value
from securebench._text import one_line
from securebench.errors import ConfigError, os_reason
from securebench.importers.sources.archives import open_archive
from securebench.importers.sources.base import LEFT_OUT, MAX_FILES, Opener, Source, SourceFile, matches

HUB = "hf:"


@contextmanager
def open_source(text: str, only: tuple[str, ...] = ()) -> Iterator[Source]:
    """The source that a person named, valid inside the `with`: the path of a file, of a directory or of an archive
    (.zip, .tar, .tar.gz and its like), or `hf:OWNER/NAME@COMMIT[/PATH]`; of its files those that match one of the
    patterns `only`. Raises ConfigError, InfrastructureError, IntegrityError.

    Links in a directory are refused, nothing of an archive is written to disk under a name of its own."""
    with _opened(text, only) as source:
        chosen = source.matching(*only) if only else source.files
        if not chosen:
            raise ConfigError(f"{source.name}: has no file that matches {', '.join(only)}" if only else _empty(source))
        yield replace(source, files=chosen, only=only)


def _empty(source: Source) -> str:
    return f"{source.name}: holds no file"


@contextmanager
def _opened(text: str, only: tuple[str, ...]) -> Iterator[Source]:
    if text.startswith(HUB):
        from securebench.importers.sources.hub import open_dataset

        with open_dataset(text.removeprefix(HUB), only) as source:
            yield source
        return
    path = Path(text)
    if path.is_dir():
        with open_tree(path, only) as source:
            yield source
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(_fs.open_named(path))
        except OSError as error:
            raise ConfigError(f"{one_line(text, 200)}: {os_reason(error)}{_hint(text)}") from error
        name, digest = path.name, _digest(file)
        archive = stack.enter_context(open_archive(file, name, digest))
        yield archive or Source(name, digest, (_single(file, name),))


@contextmanager
def open_tree(path: Path, only: tuple[str, ...] = ()) -> Iterator[Source]:
    """A directory and the regular files in it that match `only`. Raises ConfigError for links and special files."""
    with ExitStack() as stack:
        try:
            root = stack.enter_context(_fs.open_directory(path))
            lines, files = [], []
            for entry in _fs.walk(root, PurePosixPath(), MAX_FILES):
                wanted = not only or matches(str(entry.path), only)
                if entry.is_dir or not wanted or LEFT_OUT.intersection(entry.path.parts):
                    continue
                with os.fdopen(os.dup(entry.descriptor), "rb") as file:
                    lines.append([str(entry.path), entry.executable, _digest(file)])
                files.append(SourceFile(str(entry.path), entry.size, entry.executable, _beneath(root, entry.path)))
        except (_fs.UnsafeEntry, OSError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            raise ConfigError(f"{path}: {reason}") from error
        yield Source(path.resolve().name, digest_value(lines), tuple(files))


def _single(file: BinaryIO, name: str) -> SourceFile:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        file.seek(0)
        yield file

    status = os.fstat(file.fileno())
    return SourceFile(name, status.st_size, bool(status.st_mode & 0o111), opened)


def _beneath(root: int, path: PurePosixPath) -> Opener:
    """Opens a file of a directory without following links."""

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        try:
            with _fs.open_beneath(root, path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
                file.seek(0)
                yield file
        except _fs.UnsafeEntry as error:
            raise ConfigError(str(error)) from error

    return opened


def _digest(file: BinaryIO) -> str:
    sha = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(_fs.CHUNK):
        sha.update(chunk)
    file.seek(0)
    return f"sha256:{sha.hexdigest()}"


def _hint(text: str) -> str:
    if "/" in text and not text.startswith((".", "/", "~")) and not Path(text).suffix:
        return f"; a data set of the Hugging Face hub is named {HUB}{text}@COMMIT"
    return ""
