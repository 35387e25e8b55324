"""A directory tree as one stream of bytes: how a scratch directory is filled without mounting anything writable.

The sender reads a staging directory of ours; the receiver, `seed_reader.py`, writes it inside the sandbox before any
untrusted code runs. Regular files, directories, and links, which are kept as text and followed by nobody outside;
permission bits and modification times are kept.

A record is a fixed header (kind, mode, mtime in ns, path length, content length), the path, the content (of a link,
its target). Directories come before what they hold; their times are set last, by the receiver.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap.seed_reader import unpack

HEADER = struct.Struct("<BIqIQ")
DIRECTORY, FILE, TARGET, END, LINK = 1, 2, 3, 4, 5
CHUNK = 1 << 20


def encode(seeds: list[tuple[str, Path]]) -> Iterator[bytes]:
    """The stream for these (target inside, staging directory) pairs. Raises SandboxError on anything else in them."""
    for target, root in seeds:
        yield _record(TARGET, 0, 0, os.fsencode(target), 0)
        yield from _tree(root)
    yield _record(END, 0, 0, b"", 0)


def send(fd: int, seeds: list[tuple[str, Path]]) -> None:
    """Write the stream to a blocking descriptor and close it. Meant for a worker thread."""
    with open(fd, "wb", buffering=CHUNK) as stream:
        for piece in encode(seeds):
            stream.write(piece)


def copy(root: Path, directory: int) -> None:
    """The same tree in another directory of this host, by the same rules. Raises SandboxError, OSError."""
    pieces = encode([("/", root)])
    pending = bytearray()

    def read(size: int) -> bytes:
        while len(pending) < size and (piece := next(pieces, b"")):
            pending.extend(piece)
        taken = bytes(pending[:size])
        del pending[:size]
        return taken

    unpack(read, {b"/": directory})


def _tree(root: Path) -> Iterator[bytes]:
    yield _entry(DIRECTORY, b".", root.stat(), 0)
    for directory, names, files in os.walk(root, onerror=_fail):
        names.sort()
        here = Path(directory)
        for name in names:
            path = here / name
            info = path.lstat()
            if stat.S_ISLNK(info.st_mode):
                yield _link(path, root, info)
            elif stat.S_ISDIR(info.st_mode):
                yield _entry(DIRECTORY, _relative(path, root), info, 0)
            else:
                raise _refusal(path)
        for name in sorted(files):
            path = here / name
            info = path.lstat()
            if stat.S_ISLNK(info.st_mode):
                yield _link(path, root, info)
            else:
                yield from _file(path, root)


def _link(path: Path, root: Path, info: os.stat_result) -> bytes:
    target = os.readlink(os.fsencode(path))  # noqa: PTH115  (pathlib would tidy the text up)
    return _entry(LINK, _relative(path, root), info, len(target)) + target


def _file(path: Path, root: Path) -> Iterator[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"scratch seed cannot be read as a regular file: {error}") from error
    with os.fdopen(fd, "rb") as source:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise _refusal(path)
        yield _entry(FILE, _relative(path, root), info, info.st_size)
        left = info.st_size
        while left:
            piece = source.read(min(left, CHUNK))
            if not piece:
                raise SandboxError(f"scratch seed {path} shrank while it was read")
            left -= len(piece)
            yield piece


def _relative(path: Path, root: Path) -> bytes:
    return os.fsencode(path.relative_to(root))


def _entry(kind: int, path: bytes, info: os.stat_result, size: int) -> bytes:
    return _record(kind, stat.S_IMODE(info.st_mode) & 0o777, info.st_mtime_ns, path, size)


def _record(kind: int, mode: int, mtime_ns: int, path: bytes, size: int) -> bytes:
    return HEADER.pack(kind, mode, mtime_ns, len(path), size) + path


def _refusal(path: Path) -> SandboxError:
    return SandboxError(f"scratch seed holds {path}, which is neither a regular file nor a directory")


def _fail(error: OSError) -> None:
    raise SandboxError(f"scratch seed cannot be read: {error}") from error
