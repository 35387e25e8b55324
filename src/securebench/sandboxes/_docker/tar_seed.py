"""A staging directory of ours as a tar stream: how a scratch volume is filled before anything untrusted runs.

Regular files, directories, and links, kept as text as in `seed.py`; permission bits and times are kept; the owner is
the user of the sandbox. A relative link that climbs out of the directory is left out: the daemon takes no archive that
holds one.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
from pathlib import Path
from typing import BinaryIO

from securebench.errors import SandboxError


def write_seed(stream: BinaryIO, root: Path, user: int) -> None:
    """Write the tree beneath `root`. Raises SandboxError for anything in it that is not a file or directory."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for directory, names, files in os.walk(root, onerror=_fail):
            names.sort()
            for name in names:
                path = Path(directory, name)
                if not _climbs_out(path, root):
                    archive.addfile(_header(path, root, path.lstat(), user))
            for name in sorted(files):
                path = Path(directory, name)
                if _climbs_out(path, root):
                    continue
                if stat.S_ISLNK(path.lstat().st_mode):
                    archive.addfile(_header(path, root, path.lstat(), user))
                else:
                    _add_file(archive, path, root, user)


def check_seed(root: Path) -> None:
    """Raises SandboxError when `write_seed` would, without reading contents."""
    for directory, names, files in os.walk(root, onerror=_fail):
        for name in (*names, *files):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                raise _refusal(path)


def _climbs_out(path: Path, root: Path) -> bool:
    if not path.is_symlink():
        return False
    target = os.readlink(path)  # noqa: PTH115 — as it is
    place = posixpath.normpath(posixpath.join(str(path.parent.relative_to(root)), target))
    return not target.startswith("/") and place.split("/")[0] == ".."


def _add_file(archive: tarfile.TarFile, path: Path, root: Path, user: int) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"scratch seed cannot be read as a regular file: {error}") from error
    with os.fdopen(fd, "rb") as source:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise _refusal(path)
        try:
            archive.addfile(_header(path, root, info, user), source)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise SandboxError(f"scratch seed {path} changed while it was read: {error}") from error


def _header(path: Path, root: Path, info: os.stat_result, user: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(str(path.relative_to(root)))
    header.mode = stat.S_IMODE(info.st_mode) & 0o777
    header.uid = header.gid = user
    if stat.S_ISDIR(info.st_mode):
        header.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(info.st_mode):
        header.type, header.linkname = tarfile.SYMTYPE, os.readlink(path)  # noqa: PTH115  (as it is)
    else:
        header.size = info.st_size
    seconds, fraction = divmod(info.st_mtime_ns, 10**9)
    header.mtime = seconds
    if fraction:
        header.pax_headers = {"mtime": f"{seconds}.{fraction:09d}"}
    return header


def _refusal(path: Path) -> SandboxError:
    return SandboxError(f"scratch seed holds {path}, which is neither a regular file nor a directory")


def _fail(error: OSError) -> None:
    raise SandboxError(f"scratch seed cannot be read: {error}") from error
