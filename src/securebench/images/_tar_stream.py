"""A finished root file system as a tar stream, piece by piece: what a store's own reader takes."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from securebench._fs import CHUNK, EPOCH_NS
from securebench.errors import IntegrityError

_BLOCK = tarfile.BLOCKSIZE


def tar_stream(rootfs: Path) -> Iterator[bytes]:
    """Directories, files and links beneath `rootfs`, in a fixed order. Raises IntegrityError for anything else."""
    for parent, directories, files in os.walk(rootfs):
        directories.sort()
        for name in (*directories, *sorted(files)):
            yield from _entry(rootfs, Path(parent, name))
    yield bytes(2 * _BLOCK)


def _entry(rootfs: Path, path: Path) -> Iterator[bytes]:
    status = path.lstat()
    info = tarfile.TarInfo(str(path.relative_to(rootfs)))
    info.mode, info.mtime = stat.S_IMODE(status.st_mode), EPOCH_NS // 10**9
    if stat.S_ISLNK(status.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
    elif stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISREG(status.st_mode):
        info.size = status.st_size
    else:
        raise IntegrityError(f"{path} is no file, directory or link; the image was changed after its import")
    yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    if not info.isreg():
        return
    left = info.size
    with path.open("rb") as file:
        while left and (data := file.read(min(left, CHUNK))):
            left -= len(data)
            yield data
    if left:
        raise IntegrityError(f"{path} became shorter; the image was changed after its import")
    yield bytes(-info.size % _BLOCK)
