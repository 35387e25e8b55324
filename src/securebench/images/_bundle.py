"""An image archive as a set of named blobs: a tar file that is indexed once, or an OCI layout directory."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from securebench._fs import UnsafeEntry, open_beneath, open_directory
from securebench._paths import relative_path
from securebench.errors import ConfigError, IntegrityError
from securebench.images._inside import split_name
from securebench.images._streams import Blob, BlobStream
from securebench.images._tar import Kind, TarReader, show_name
from securebench.images.budget import Budget, ImportLimits

_MOST_NAMES = 20_000  # an image archive has a few dozen; a tar with more is a root file system
_MOST_LINKS = 8  # old `docker save` archives link equal layers to each other


class Bundle(Protocol):
    """Named blobs. The descriptors in them belong to the bundle."""

    @property
    def shown(self) -> str: ...

    def has(self, name: str) -> bool: ...

    def open(self, name: str) -> Blob:
        """Raises ConfigError when there is no such regular file."""
        ...


class TarBundle:
    """A tar file on disk, read through one descriptor that stays the caller's."""

    def __init__(self, blob: Blob, shown: str, limits: ImportLimits) -> None:
        """Raises ConfigError when it is not a tar archive."""
        self.shown = shown
        self._whole = blob
        self._blobs: dict[str, Blob] = {}
        self._links: dict[str, str] = {}
        self._twice: set[str] = set()
        try:
            self._index(Budget(limits))
        except UnsafeEntry as error:
            raise ConfigError(f"{shown}: {error}") from error

    def _index(self, budget: Budget) -> None:
        stream = BlobStream(self._whole)
        for member in TarReader(stream, budget):
            if len(self._blobs) > _MOST_NAMES:
                return
            if member.kind not in (Kind.FILE, Kind.SYMLINK, Kind.HARDLINK):
                continue
            name = _name(member.name, budget.limits)
            if name in self._blobs or name in self._links:
                self._twice.add(name)
            if member.kind is Kind.FILE:
                self._blobs[name] = Blob(self._whole.descriptor, self._whole.offset + stream.position, member.size)
            else:
                base = posixpath.dirname(name) if member.kind is Kind.SYMLINK else ""
                self._links[name] = posixpath.normpath(posixpath.join(base, os.fsdecode(member.target)))

    def has(self, name: str) -> bool:
        return name in self._blobs

    def open(self, name: str) -> Blob:
        found = posixpath.normpath(name)
        for _ in range(_MOST_LINKS):
            if found in self._twice:
                raise ConfigError(f"{self.shown}: contains {found!r} twice")
            if found in self._blobs:
                return self._blobs[found]
            if found not in self._links:
                break
            found = self._links[found]
        raise ConfigError(f"{self.shown}: {name!r} is missing; the archive is incomplete")


def _name(raw: bytes, limits: ImportLimits) -> str:
    try:
        return os.fsdecode(b"/".join(split_name(raw, limits.path_bytes)))
    except UnsafeEntry as error:
        raise UnsafeEntry(f"member {show_name(raw)}: {error}") from None


class DirectoryBundle:
    """An OCI layout directory. Links in it are not followed."""

    def __init__(self, path: Path, cleanup: ExitStack) -> None:
        self.shown = str(path)
        self._cleanup = cleanup
        self._root = cleanup.enter_context(open_directory(path))

    def has(self, name: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(name, dir_fd=self._root, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def open(self, name: str) -> Blob:
        try:
            descriptor = self._cleanup.enter_context(open_beneath(self._root, relative_path(name)))
        except ValueError as error:  # UnsafeEntry is one too
            raise ConfigError(f"{self.shown}: {error}") from error
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{self.shown}: {name!r} is not a regular file")
        return Blob(descriptor, 0, status.st_size)


def read_document(bundle: Bundle, name: str, limit: int, digest: str | None = None) -> bytes:
    """A small blob as a whole. Raises ConfigError when it is too large, IntegrityError when its digest differs."""
    blob = bundle.open(name)
    if blob.size > limit:
        raise ConfigError(f"{bundle.shown}: {name!r} has {blob.size} bytes; at most {limit} are allowed")
    data = BlobStream(blob).read(blob.size)
    found = "sha256:" + hashlib.sha256(data).hexdigest()
    if digest is not None and found != digest:
        raise IntegrityError(f"{bundle.shown}: {name!r} has digest {found}; {digest} was promised")
    return data
