"""What an agent left in a scratch volume, from one archive stream into a fresh directory of ours.

The stream is made by the engine from a tree that hostile code wrote and no live process can change any more. Rules:

- regular files and directories are kept; modes become 0644, 0755 for what is executable, 0755 for directories;
- a symbolic link is kept as a link if its text is relative, climbs only at its beginning and no higher than the
  root; no chain of such links can lead outside;
- a hard link becomes a file of its own; owners, times, extended attributes, setuid and setgid bits are not kept;
- devices, FIFOs, other links, and names that are not UTF-8 or hold control characters are left out, listed with
  the reason; sockets are not in the stream;
- an exceeded budget is the candidate's failure. Zeros are not written, so a sparse file costs no disk.

Members are written relative to descriptors, one path component at a time, following no link, replacing nothing.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from securebench._fs import TooLarge, UnsafeEntry
from securebench.errors import CandidateError, FailureReason, SandboxError
from securebench.images._tar import ByteStream, Kind, Member, TarReader, show_name
from securebench.images.budget import Budget, ImportLimits

_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_LISTED = 1000
_NAME_BYTES = 255
_LINK_BYTES = 1024


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """Bounds of one captured tree."""

    bytes: int
    entries: int = 100_000
    depth: int = 64
    path_bytes: int = 2048
    """Engines silently leave out what lies deeper than the kernel's longest path; this is found before that."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One entry that was not captured."""

    path: str
    reason: str


@dataclass(slots=True)
class Descriptor:
    """A blocking descriptor as the tar reader wants it."""

    fd: int

    def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size and (chunk := os.read(self.fd, size - len(data))):
            data += chunk
        return bytes(data)

    def some(self, limit: int) -> bytes:
        return os.read(self.fd, limit)

    def skip(self, size: int) -> int:
        left = size
        while left and (chunk := os.read(self.fd, min(left, _CHUNK))):
            left -= len(chunk)
        return size - left


def capture(stream: ByteStream, root: int, limits: CaptureLimits) -> tuple[LeftOut, ...]:
    """Write the tree of `stream` beneath the empty directory `root`; what was left out.

    Raises CandidateError when it is too much, SandboxError when the stream is not what an engine writes.
    """
    # Each member may have one extension header; the reader counts both.
    reader = TarReader(stream, Budget(ImportLimits(members=2 * limits.entries + 2)))
    tree = _Tree(root, limits)
    try:
        for member in reader:
            tree.put(member, reader.chunks())
    except TooLarge as error:
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, f"the captured tree: {error}") from error
    except UnsafeEntry as error:
        raise SandboxError(f"the engine's archive cannot be read: {error}") from error
    finally:
        tree.close()
    return tuple(tree.left_out)


@dataclass(slots=True)
class _Tree:
    root: int
    limits: CaptureLimits
    left_out: list[LeftOut] = field(default_factory=list)
    _bytes: int = 0
    _entries: int = 0
    _files: dict[tuple[bytes, ...], int] = field(default_factory=dict)
    _pruned: set[tuple[bytes, ...]] = field(default_factory=set)
    _parent: tuple[tuple[bytes, ...], int] | None = None

    def put(self, member: Member, data: Iterable[bytes]) -> None:
        parts = _parts(member.name)
        if not parts:
            return  # the root itself
        self._count(parts)
        if any(parts[:depth] in self._pruned for depth in range(1, len(parts))):
            return
        if (reason := name_problem(parts[-1])) is not None:
            self._leave(parts, reason)
            return
        try:
            self._put(parts, member, data)
        except FileExistsError as error:
            raise SandboxError(f"the engine's archive has {show_name(member.name)} twice") from error

    def _put(self, parts: tuple[bytes, ...], member: Member, data: Iterable[bytes]) -> None:
        if member.kind is Kind.FILE:
            self._spend(member.size)
            self._write(parts, member.mode, data)
            self._files[parts] = member.size
        elif member.kind is Kind.DIRECTORY:
            os.mkdir(parts[-1], 0o755, dir_fd=self._directory(parts[:-1]))
        elif member.kind is Kind.SYMLINK:
            if link_stays_beneath(parts, member.target):
                os.symlink(member.target, parts[-1], dir_fd=self._directory(parts[:-1]))
            else:
                self._leave(parts, "a link that leads outside")
        elif member.kind is Kind.HARDLINK:
            self._copy(parts, _parts(member.target))
        else:
            self._leave(parts, "a device or FIFO")

    def close(self) -> None:
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None

    def _count(self, parts: tuple[bytes, ...]) -> None:
        self._entries += 1
        if self._entries > self.limits.entries:
            raise TooLarge(f"it has more than {self.limits.entries} entries")
        if len(parts) > self.limits.depth:
            raise TooLarge(f"it is nested more than {self.limits.depth} deep")
        if len(b"/".join(parts)) > self.limits.path_bytes:
            raise TooLarge(f"it has paths of more than {self.limits.path_bytes} bytes")

    def _spend(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self.limits.bytes:
            raise TooLarge(f"its files have more than {self.limits.bytes} bytes")

    def _leave(self, parts: tuple[bytes, ...], reason: str) -> None:
        self._pruned.add(parts)
        if len(self.left_out) < _LISTED:
            self.left_out.append(LeftOut(_printable(show_name(b"/".join(parts))), reason))

    def _directory(self, parts: tuple[bytes, ...]) -> int:
        """A descriptor on a directory this capture made; kept until another is asked for."""
        if self._parent is not None and self._parent[0] == parts:
            return self._parent[1]
        self.close()
        descriptor = os.dup(self.root)
        try:
            for part in parts:
                following = os.open(part, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = following
        except OSError as error:
            os.close(descriptor)
            raise SandboxError(f"the engine's archive has no directory for {show_name(b'/'.join(parts))}") from error
        self._parent = (parts, descriptor)
        return descriptor

    def _write(self, parts: tuple[bytes, ...], mode: int, data: Iterable[bytes]) -> None:
        descriptor = os.open(parts[-1], _NEW_FILE, 0o600, dir_fd=self._directory(parts[:-1]))
        try:
            for chunk in data:
                if chunk.count(0) == len(chunk):
                    os.lseek(descriptor, len(chunk), os.SEEK_CUR)
                    continue
                view = memoryview(chunk)
                while view:
                    view = view[os.write(descriptor, view) :]
            os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))
            os.fchmod(descriptor, 0o755 if mode & 0o111 else 0o644)
        finally:
            os.close(descriptor)

    def _copy(self, parts: tuple[bytes, ...], source: tuple[bytes, ...]) -> None:
        size = self._files.get(source)
        if size is None:
            self._leave(parts, "a hard link to something that was left out")
            return
        self._spend(size)
        original = os.open(source[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory(source[:-1]))
        try:
            self._write(parts, os.fstat(original).st_mode, iter(lambda: os.read(original, _CHUNK), b""))
        finally:
            os.close(original)
        self._files[parts] = size


def _parts(name: bytes) -> tuple[bytes, ...]:
    """The components of a member's name. Raises SandboxError for one no engine writes."""
    parts = tuple(part for part in name.split(b"/") if part not in (b"", b"."))
    if b".." in parts or name.startswith(b"/") or b"\0" in name:
        raise SandboxError(f"the engine's archive names {show_name(name)!r}, which leads outside")
    return parts


def _printable(text: str) -> str:
    """For records and terminals: what could move a cursor or forge a line is spelled out."""
    shown = (char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return "".join(shown)


def name_problem(name: bytes) -> str | None:
    """Why a file name is not captured, or None."""
    if len(name) > _NAME_BYTES:
        return "a name that is too long"
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return "a name that is not UTF-8"
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text):
        return "a name with control characters"
    return None


def link_stays_beneath(parts: tuple[bytes, ...], target: bytes) -> bool:
    """Whether a link at `parts` is kept: relative text that climbs only at its beginning, at most to the root."""
    if not target or target.startswith(b"/") or b"\0" in target or len(target) > _LINK_BYTES:
        return False
    steps = [step for step in target.split(b"/") if step not in (b"", b".")]
    climbs = next((index for index, step in enumerate(steps) if step != b".."), len(steps))
    return b".." not in steps[climbs:] and climbs <= len(parts) - 1
