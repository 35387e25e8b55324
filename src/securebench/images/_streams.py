"""Bytes of an archive or a layer: where they lie, how they are decompressed, what they must hash to.

Digests are computed while the bytes pass, so nothing is read twice; `LayerStream.finish` reads to the end and
decides. Decompression is bounded per step, in total and by ratio."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import os
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, Protocol

from securebench._fs import UnsafeEntry
from securebench.errors import ConfigError, IntegrityError
from securebench.images.budget import MIB, Budget

PLAIN_CHUNK = MIB
COMPRESSED_CHUNK = 64 * 1024  # small: what follows a finished gzip member is copied once per member
_XZ_MEMORY = 256 * MIB


class Blob(NamedTuple):
    """A run of bytes in an open file, which belongs to somebody else."""

    descriptor: int
    offset: int
    size: int

    def read_at(self, position: int, size: int) -> bytes:
        return os.pread(self.descriptor, max(0, min(size, self.size - position)), self.offset + position)


class BlobStream:
    """A blob read in order. `position` is where the next byte comes from."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self.position = 0

    def read(self, size: int) -> bytes:
        data = self.some(size)
        while 0 < len(data) < size and (more := self.some(size - len(data))):
            data += more
        return data

    def some(self, limit: int) -> bytes:
        data = self._blob.read_at(self.position, limit)
        self.position += len(data)
        return data

    def skip(self, size: int) -> int:
        skipped = max(0, min(size, self._blob.size - self.position))
        self.position += skipped
        return skipped


class Decoder(Protocol):
    """What the decompressors of the standard library have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self._capped = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._capped

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        # A full output means that zlib may hold back more, even when it has taken all its input.
        self._capped = bool(self._zlib.unconsumed_tail) or len(out) == max_length
        return out


class Format(NamedTuple):
    """A compression: its name for messages, how to decode it, and what a decoder raises on damaged data."""

    name: str
    decoder: Callable[[], Decoder]
    error: type[Exception]


def compression_of(first: bytes) -> Format | None:
    """The compression that these first bytes announce; None for none. Raises ConfigError for zstd without a decoder."""
    if first.startswith(b"\x1f\x8b"):
        return Format("gzip", _Gzip, zlib.error)
    if first.startswith(b"\xfd7zXZ\0"):
        return Format("xz", lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY), lzma.LZMAError)
    if first.startswith(b"BZh"):
        return Format("bzip2", bz2.BZ2Decompressor, OSError)
    if first.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd()
    return None


def _zstd() -> Format:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            zstd = import_module(module)
        except ModuleNotFoundError:
            continue
        return Format("zstd", zstd.ZstdDecompressor, zstd.ZstdError)
    raise ConfigError(
        "compressed with zstd, which this Python cannot read; use Python 3.14 or newer, `pip install backports.zstd`, "
        "or convert the image to gzip (skopeo copy --dest-compress-format gzip, docker save)"
    )


class LayerStream:
    """The decompressed bytes of a blob, hashed on both sides of the decompressor.

    Raises UnsafeEntry for damaged or exploding data, and IntegrityError from `finish` and `check_blob`."""

    def __init__(
        self,
        blob: Blob,
        budget: Budget,
        *,
        digest: str | None = None,
        diff_id: str | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self._blob = blob
        self._budget = budget
        self._digest, self._diff_id = digest, diff_id
        self._on_bytes = on_bytes
        self._format = compression_of(blob.read_at(0, 8))
        self._decoder = self._format.decoder() if self._format else None
        # Without compression both digests are of the same bytes.
        self._raw_hash = hashlib.sha256() if digest and self._format else None
        self._hash = hashlib.sha256() if diff_id or (digest and not self._format) else None
        self._read = 0
        self._produced = 0
        self._buffer = b""
        self._start = 0

    def read(self, size: int) -> bytes:
        end = self._start + size
        if end <= len(self._buffer):
            data = self._buffer[self._start : end]
            self._start = end
            return data
        data = self.some(size)
        while 0 < len(data) < size and (more := self.some(size - len(data))):
            data += more
        return data

    def some(self, limit: int) -> bytes:
        if self._start >= len(self._buffer):
            self._buffer, self._start = self._next(), 0
        data = self._buffer[self._start : self._start + limit]
        self._start += len(data)
        return data

    def skip(self, size: int) -> int:
        left = size
        while left:
            if self._start >= len(self._buffer):
                self._buffer, self._start = self._next(), 0
                if not self._buffer:
                    break
            step = min(left, len(self._buffer) - self._start)
            self._start += step
            left -= step
        return size - left

    def finish(self) -> None:
        """Read to the end and compare both digests. Raises IntegrityError when one differs."""
        while self._next():
            pass
        self.check_blob()
        if self._diff_id and self._hash is not None:
            _compare("its uncompressed bytes", self._hash.hexdigest(), self._diff_id)

    def check_blob(self) -> None:
        """Compare the digest of the bytes as stored, without decompressing what is left. Raises IntegrityError."""
        while self._raw():
            pass
        if self._digest and self._raw_hash is not None:
            _compare("its bytes", self._raw_hash.hexdigest(), self._digest)
        elif self._digest and self._hash is not None:
            _compare("its bytes", self._hash.hexdigest(), self._digest)

    def _next(self) -> bytes:
        data = self._raw() if self._decoder is None else self._decoded(self._decoder)
        self._produced += len(data)
        self._budget.add_bytes(len(data))
        self._budget.check_ratio(self._read, self._produced)
        if self._hash is not None and self._decoder is not None:
            self._hash.update(data)
        return data

    def _raw(self) -> bytes:
        chunk = self._blob.read_at(self._read, COMPRESSED_CHUNK if self._decoder else PLAIN_CHUNK)
        self._read += len(chunk)
        hashed = self._hash if self._decoder is None else self._raw_hash
        if hashed is not None:
            hashed.update(chunk)
        if self._on_bytes is not None and chunk:
            self._on_bytes(self._read)
        return chunk

    def _decoded(self, decoder: Decoder) -> bytes:
        assert self._format is not None  # noqa: S101  (there is a decoder only where there is a format)
        while True:
            data = b""
            if decoder.eof:
                data = decoder.unused_data or self._raw()
                if not data or not data.strip(b"\0"):
                    return self._only_zeros()
                self._budget.add_member()
                decoder = self._decoder = self._format.decoder()
            elif decoder.needs_input:
                data = self._raw()
                if not data:
                    raise UnsafeEntry(f"its {self._format.name} data ends too early")
            try:
                out = decoder.decompress(data, PLAIN_CHUNK)
            except self._format.error as error:
                raise UnsafeEntry(f"its {self._format.name} data is damaged ({error})") from None
            if out:
                return out

    def _only_zeros(self) -> bytes:
        while data := self._raw():
            if data.strip(b"\0"):
                raise UnsafeEntry("there is data after the end of its compressed stream")
        return b""


def _compare(what: str, found: str, expected: str) -> None:
    if f"sha256:{found}" != expected:
        raise IntegrityError(f"{what} have digest sha256:{found}; {expected} was promised")
