"""Unpacks a package's tarball, which is a stranger's archive even when its integrity is right.

Rules: gzip; every name beneath one top directory, which is dropped; only regular files and directories; relative
names of the strict grammar (`_paths`), none twice, none through a file; bounded in members, depth, bytes and ratio.
Links, devices, absolute names and `..` end the import. What is written is readable by all, executable by all
where it was executable for anyone, and has one fixed time."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from securebench._fs import EPOCH_NS, UnsafeEntry, make_directories
from securebench._paths import relative_path
from securebench.errors import IntegrityError
from securebench.images._streams import Blob, LayerStream
from securebench.images._tar import Kind, Member, TarReader, show_name
from securebench.images.budget import GIB, MIB, Budget, ImportLimits

LIMITS = ImportLimits(
    members=20_000,
    file_bytes=1 * GIB,
    total_bytes=2 * GIB,
    ratio=100,
    ratio_allowance=16 * MIB,
    depth=32,
    path_bytes=1024,
)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unpack(tarball: int, root: int, what: str, limits: ImportLimits = LIMITS) -> None:
    """Write the files of an open tarball beneath the directory `root`. Raises IntegrityError naming the member."""
    size = os.fstat(tarball).st_size
    if os.pread(tarball, 2, 0) != b"\x1f\x8b":
        raise IntegrityError(f"{what} is not a package: its tarball is not gzip")
    budget = Budget(limits)
    stream = LayerStream(Blob(tarball, 0, size), budget)
    writer = _Writer(root, TarReader(stream, budget), limits)
    try:
        writer.run()
        stream.finish()
    except UnsafeEntry as error:
        raise IntegrityError(f"{what} cannot be unpacked: {writer.place}{error}") from error


class _Writer:
    def __init__(self, root: int, tar: TarReader, limits: ImportLimits) -> None:
        self._root = root
        self._tar = tar
        self._limits = limits
        self._top: str | None = None
        self._files = 0
        self.place = ""

    def run(self) -> None:
        for member in self._tar:
            self.place = f"member {show_name(member.name)}: "
            if member.kind not in (Kind.FILE, Kind.DIRECTORY):
                raise UnsafeEntry(f"a {member.kind.value}; packages hold files and directories only")
            path = self._inside(member)
            if member.kind is Kind.DIRECTORY:
                self._directory(path)
            else:
                self._file(path, member)
            self.place = ""
        if not self._files:
            raise UnsafeEntry("it holds no file")

    def _inside(self, member: Member) -> PurePosixPath:
        """Its path without the top directory, which must be the same for all."""
        try:
            path = relative_path(member.name.decode())
        except ValueError as error:  # also what is not UTF-8
            raise UnsafeEntry(str(error)) from None
        if len(path.parts) > self._limits.depth:
            raise UnsafeEntry(f"it lies deeper than {self._limits.depth} directories")
        self._top = self._top or path.parts[0]
        if path.parts[0] != self._top:
            raise UnsafeEntry(f"it lies outside the package's directory {self._top}")
        return PurePosixPath(*path.parts[1:])

    def _directory(self, path: PurePosixPath) -> None:
        try:
            with make_directories(self._root, path):
                pass
        except NotADirectoryError:
            raise UnsafeEntry("a file of that name came before") from None

    def _file(self, path: PurePosixPath, member: Member) -> None:
        if not path.parts:
            raise UnsafeEntry("a file where the package's directory must be")
        if member.size > self._limits.file_bytes:
            raise UnsafeEntry(f"it has {member.size} bytes; at most {self._limits.file_bytes} are allowed")
        try:
            with make_directories(self._root, path.parent) as parent:
                descriptor = os.open(path.name, _WRITE, 0o600, dir_fd=parent)
        except NotADirectoryError:
            raise UnsafeEntry("it lies beneath a file") from None
        except FileExistsError:
            raise UnsafeEntry("the same name came before") from None
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for chunk in self._tar.chunks():
                _write_all(file.fileno(), chunk)
            os.fchmod(descriptor, 0o755 if member.mode & 0o111 else 0o644)
            os.utime(descriptor, ns=(EPOCH_NS, EPOCH_NS))
        self._files += 1


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
