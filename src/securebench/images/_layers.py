"""Applies layers, or a whole root file system as one tarball, to the tree being built."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from securebench._fs import UnsafeEntry
from securebench.errors import ConfigError, IntegrityError, SecureBenchError, StoreError
from securebench.images._inside import split_name
from securebench.images._streams import Blob, LayerStream
from securebench.images._tar import Member, TarReader, show_name
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget

_WHITEOUT = b".wh."
_OPAQUE = b".wh..wh..opq"
_RESERVED = b".wh..wh."  # other names a union file system kept for itself
_HOST_FAULTS = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EPERM", "ENOMEM", "EMFILE", "ENFILE")
)

Put = Callable[[Member, Iterable[bytes]], None]


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's bytes and what they must hash to: as stored, and decompressed."""

    blob: Blob
    label: str
    digest: str | None = None
    diff_id: str | None = None


def apply_layer(
    writer: RootfsWriter, layer: Layer, budget: Budget, on_bytes: Callable[[int], None] | None = None
) -> None:
    """Add one layer on top of what is there, then check its digests.

    Raises ConfigError naming the member that cannot be written, IntegrityError for bytes that are not those promised,
    StoreError when the host cannot write."""
    writer.begin_layer()
    _apply(layer, budget, on_bytes, lambda member, data: _put_or_hide(writer, budget, member, data))


def apply_tarball(
    writer: RootfsWriter, layer: Layer, budget: Budget, on_bytes: Callable[[int], None] | None = None
) -> None:
    """The same for a root file system in one tarball, where a name like `.wh.x` is just a name."""
    _apply(layer, budget, on_bytes, writer.put)


def _apply(layer: Layer, budget: Budget, on_bytes: Callable[[int], None] | None, put: Put) -> None:
    try:
        stream = LayerStream(layer.blob, budget, digest=layer.digest, diff_id=layer.diff_id, on_bytes=on_bytes)
        try:
            unpack(stream, budget, put)
            stream.finish()
        except (ConfigError, UnsafeEntry):
            stream.check_blob()  # damaged bytes explain a fault better than what they were read as
            raise
    except IntegrityError as error:
        raise IntegrityError(f"{layer.label}: {error}") from error
    except (ConfigError, UnsafeEntry) as error:
        raise ConfigError(f"{layer.label}: {error}") from error
    except StoreError as error:
        raise StoreError(f"{layer.label}: {error}") from error


def unpack(stream: LayerStream, budget: Budget, put: Put) -> None:
    """Hand every member of a tar stream to `put`. Raises ConfigError or StoreError naming the member."""
    reader = TarReader(stream, budget)
    last: bytes | None = None
    writing = False
    try:
        for member in reader:
            last, writing = member.name, True
            put(member, reader.chunks())
            writing = False
    except UnsafeEntry as error:
        where = f"{'at' if writing else 'after'} member {show_name(last)}: " if last is not None else ""
        raise ConfigError(f"{where}{error}") from error
    except OSError as error:
        raise write_fault(error, show_name(last or b"")) from error


def write_fault(error: OSError, shown: str) -> SecureBenchError:
    """Whose fault a failed write is: the host's when it is full or broken, else the image's."""
    reason = f"member {shown} cannot be written: {os.strerror(error.errno or 0).lower()}"
    return StoreError(reason) if error.errno in _HOST_FAULTS else ConfigError(reason)


def _put_or_hide(writer: RootfsWriter, budget: Budget, member: Member, data: Iterable[bytes]) -> None:
    if _WHITEOUT not in member.name:
        writer.put(member, data)
        return
    parts = split_name(member.name, budget.limits.path_bytes)
    name = parts[-1] if parts else b""
    if not name.startswith(_WHITEOUT):
        writer.put(member, data)
    elif name == _OPAQUE:
        writer.hide_contents(parts[:-1])
    elif not name.startswith(_RESERVED):
        hidden = name.removeprefix(_WHITEOUT)
        if hidden in (b"", b".", b".."):
            raise UnsafeEntry(f"it is a whiteout of {show_name(hidden)!r}, which is no name")
        writer.hide([*parts[:-1], hidden])
