"""Archives as sources: members are found once and read when asked for; nothing is written under a member's name."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from securebench._fs import CHUNK, UnsafeEntry
from securebench._paths import relative_path
from securebench.errors import ConfigError
from securebench.images._inside import split_name
from securebench.images._streams import Blob, BlobStream
from securebench.images._tar import Kind, TarReader, show_name
from securebench.importers.sources.base import (
    LEFT_OUT,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    Opener,
    Source,
    SourceFile,
)
from securebench.importers.sources.spool import blob_of, decompressed, new_budget, temporary

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_RATIO, _RATIO_ALLOWANCE = 200, 256 * 2**20


@contextmanager
def open_archive(file: BinaryIO, name: str, digest: str) -> Iterator[Source | None]:
    """The members of an archive, packed as a whole or not; None for a file that is no archive. Raises ConfigError."""
    blob = blob_of(file)
    with ExitStack() as stack:
        if blob.read_at(0, 4) in _ZIP:
            yield Source(name, digest, _ordered(_zip_files(file, name, stack)))
            return
        plain = stack.enter_context(decompressed(blob, name)) if _may_hold_tar(name) else None
        whole = blob if plain is None else blob_of(plain)
        if whole.read_at(257, 5) != b"ustar":
            yield None
            return
        yield Source(name, digest, _ordered(_tar_files(whole, name)))


def _ordered(files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    """Those of a directory in its order, however they were packed."""
    kept = (file for file in files if not LEFT_OUT.intersection(file.path.split("/")))
    return tuple(sorted(kept, key=lambda file: file.path.split("/")))


def _may_hold_tar(name: str) -> bool:
    """Whether it is worth unpacking to see. A packed file of rows is unpacked by who reads the rows."""
    lower = name.lower()
    return ".tar." in lower or lower.endswith((".tgz", ".txz", ".tbz2", ".tzst"))


def _tar_files(whole: Blob, name: str) -> Iterator[SourceFile]:
    stream = BlobStream(whole)
    seen: set[str] = set()
    try:
        for member in TarReader(stream, new_budget()):
            if member.kind is Kind.DIRECTORY:
                continue
            path = _path(os.fsdecode(b"/".join(split_name(member.name, 4096))), show_name(member.name))
            if member.kind is not Kind.FILE:
                raise UnsafeEntry(f"member {path} is a {member.kind.value}; only files and directories are taken")
            _once(path, seen)
            blob = Blob(whole.descriptor, whole.offset + stream.position, member.size)
            if blob.offset + blob.size > whole.offset + whole.size:
                raise UnsafeEntry(f"the archive ends within member {path}")
            yield SourceFile(path, member.size, bool(member.mode & 0o111), _part(blob))
    except UnsafeEntry as error:
        raise ConfigError(f"{name}: {error}") from error


def _zip_files(file: BinaryIO, name: str, stack: ExitStack) -> Iterator[SourceFile]:
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ConfigError(f"{name}: not a sound zip archive: {error}") from error
    seen: set[str] = set()
    total = 0
    for info in infos:
        if info.is_dir():
            continue
        try:
            path = _path(info.filename, show_name(info.filename.encode("utf-8", "replace")))
            _once(path, seen)
            total += info.file_size
            _check_zip(info, path, total)
        except UnsafeEntry as error:
            raise ConfigError(f"{name}: {error}") from error
        yield SourceFile(path, info.file_size, bool(info.external_attr >> 16 & 0o111), _zip_opener(archive, info, name))


def _check_zip(info: zipfile.ZipInfo, path: str, total: int) -> None:
    kind = info.external_attr >> 16 & 0o170000
    if kind not in (0, 0o100000):
        raise UnsafeEntry(f"member {path} is neither a file nor a directory")
    if info.flag_bits & 1:
        raise UnsafeEntry(f"member {path} is encrypted")
    if info.file_size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
        raise UnsafeEntry(f"member {path} and those before it hold more than {MAX_TOTAL_BYTES} bytes")
    if info.file_size > _RATIO_ALLOWANCE + _RATIO * info.compress_size:
        raise UnsafeEntry(f"member {path} says that it unpacks to {info.file_size} bytes; at most {_RATIO} to 1")


_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError)


def _zip_opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Opener:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        with temporary() as spool:
            size = 0
            try:
                with archive.open(info) as member:
                    while chunk := member.read(CHUNK):
                        size += len(chunk)
                        if size > info.file_size:
                            raise ConfigError(f"{name}: member {info.filename!r} is larger than it says")
                        spool.write(chunk)
            except (*_DAMAGED, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
                raise ConfigError(f"{name}: member {info.filename!r} cannot be read: {error}") from error
            spool.flush()
            spool.seek(0)
            yield spool

    return opened


def _part(blob: Blob) -> Opener:
    """A member that lies unpacked within another file."""

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        with temporary() as spool:
            stream = BlobStream(blob)
            while chunk := stream.some(CHUNK):
                spool.write(chunk)
            spool.flush()
            spool.seek(0)
            yield spool

    return opened


def _path(text: str, shown: str) -> str:
    try:
        return str(relative_path(text.removeprefix("./")))
    except ValueError as error:
        raise UnsafeEntry(f"member {shown}: {error}") from None


def _once(path: str, seen: set[str]) -> None:
    if path in seen:
        raise UnsafeEntry(f"member {path} comes twice")
    seen.add(path)
    if len(seen) > MAX_FILES:
        raise UnsafeEntry(f"more than {MAX_FILES} members")
