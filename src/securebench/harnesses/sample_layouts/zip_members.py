"""Members of a stranger's zip archive: read one at a time into bounded memory, never written under their names."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from importlib import import_module
from typing import Any, BinaryIO, Self

from securebench.harnesses.sample_layouts.base import CHUNK, MAX_BYTES

MAX_MEMBERS = 1_000_000
MAX_DIRECTORY = 256 * 2**20
_ZSTD = 93
_END, _LARGE, _LOCATOR = 22, 56, 20  # bytes of the end record, of the one for large archives, of what points to it
_TAIL = _LARGE + _LOCATOR + _END + 2**16  # with the longest comment behind them
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, zlib.error)


class NotReadable(ValueError):
    """Why an archive or a member of it cannot be read."""


class Members:
    """The members of an archive by name. `most` are the bytes that one of them may have."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        _check_directory(file)
        try:
            self._archive = zipfile.ZipFile(file)
        except _BROKEN as error:
            raise NotReadable(f"not a sound zip archive: {error}") from error
        infos = self._archive.infolist()
        self._infos = {info.filename: info for info in infos}
        self._file = file
        self._most = most
        self._left = MAX_BYTES
        if len(infos) > MAX_MEMBERS:
            raise NotReadable(f"an archive of more than {MAX_MEMBERS} members")
        if len(self._infos) != len(infos):
            raise NotReadable("an archive in which two members have the same name")
        if any(info.compress_type == _ZSTD for info in infos):
            _zstd(b"")  # said once, not for every member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    @property
    def names(self) -> dict[str, zipfile.ZipInfo]:
        """In the order of the archive."""
        return self._infos

    def read(self, name: str) -> bytes:
        """Raises NotReadable."""
        info = self._infos[name]
        if info.flag_bits & 1:
            raise NotReadable("is encrypted")
        if max(info.file_size, info.compress_size) > min(self._most, self._left):
            raise NotReadable(f"has {info.file_size} bytes; at most {self._most} are allowed, and {MAX_BYTES} in all")
        self._left -= info.file_size
        try:
            with self._opened(info) as member:
                data = bytearray()
                while chunk := member.read(min(CHUNK, info.file_size + 1 - len(data))):
                    data += chunk
        except NotReadable:
            raise
        except _BROKEN as error:
            raise NotReadable(f"cannot be read: {error}") from error
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise NotReadable("is not what the archive says it is")
        return bytes(data)

    def _opened(self, info: zipfile.ZipInfo) -> Any:
        if info.compress_type != _ZSTD:
            return self._archive.open(info)
        self._file.seek(info.header_offset)
        header = self._file.read(30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise NotReadable("has no header in the archive")
        self._file.seek(sum(struct.unpack("<HH", header[26:30])), io.SEEK_CUR)
        return _zstd(self._file.read(info.compress_size))


def _zstd(data: bytes) -> Any:
    """What zipfile of this Python cannot read. The error of each decoder is told as what is wrong with the member."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            found = import_module(module)
        except ModuleNotFoundError:
            continue
        return _Guarded(found.ZstdFile(io.BytesIO(data)), found.ZstdError)
    try:
        found = import_module("zstandard")
    except ModuleNotFoundError:
        raise NotReadable(
            "compressed with zstd, which this Python cannot read; use Python 3.14 or newer, `pip install "
            "backports.zstd`, or write the log as JSON (inspect log convert --to json)"
        ) from None
    return _Guarded(found.ZstdDecompressor().stream_reader(data, read_across_frames=True), found.ZstdError)


class _Guarded:
    """A stream whose decoder has an error of its own."""

    def __init__(self, stream: Any, error: type[Exception]) -> None:
        self._stream = stream
        self._error = error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, most: int) -> bytes:
        try:
            return bytes(self._stream.read(most))
        except self._error as error:
            raise NotReadable(f"cannot be read: {error}") from error


def _check_directory(file: BinaryIO) -> None:
    """The list of members is read at once, so an archive that says it is huge is not opened. Raises NotReadable."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < _END:
        raise NotReadable("not a sound zip archive: it has no end record")
    (listed,) = struct.unpack("<L", tail[place + 12 : place + 16])
    large = tail[max(0, place - _LOCATOR - _LARGE) : max(0, place - _LOCATOR)]
    if large.startswith(b"PK\x06\x06") and len(large) == _LARGE:
        (listed,) = struct.unpack("<Q", large[40:48])
    if listed > MAX_DIRECTORY:
        raise NotReadable(f"an archive whose list of members has {listed} bytes; at most {MAX_DIRECTORY} are read")
