"""Which user a sandbox is for the kernel.

Bubblewrap's `--uid` changes only what the inside sees: started by root, its processes stay kernel uid 0, read
root's files and escape the process limit. So when we are root every sandbox drops to a user id of its own before
bubblewrap starts, from a range nobody else uses; an ordinary user keeps its own id.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from securebench.errors import SandboxError

# Tried in this order; the first that this user namespace maps completely is used. Neither belongs to login users,
# to distributions' static ids, to systemd's dynamic users or to common subordinate id allocations.
_RANGES = (range(2_003_000_000, 2_003_004_096), range(60_600, 61_100))

_LOCKS = Path("/run/securebench/uids")


@dataclass(frozen=True, slots=True)
class Identity:
    """`uid` is the kernel user (and group) to become, or None to stay what we are."""

    uid: int | None

    @property
    def mode(self) -> str:
        return "own" if self.uid is None else "dropped"

    def may_reach(self, path: Path) -> bool:
        """Whether this identity can open `path`; decided from modes, as it owns nothing and is in no group."""
        if self.uid is None:
            return True
        parents = all(parent.stat().st_mode & 0o001 for parent in path.parents)
        wanted = 0o005 if path.is_dir() else 0o004
        return parents and path.stat().st_mode & wanted == wanted


def dropping() -> bool:
    """Whether sandboxes of this process drop to another user."""
    return os.geteuid() == 0 and _range() is not None


@contextmanager
def lease_identity() -> Iterator[Identity]:
    """An identity no other live sandbox on this host has, given back at the end.

    Raises SandboxError when the whole range is in use.
    """
    ids = _range() if os.geteuid() == 0 else None
    if ids is None:
        yield Identity(None)
        return
    uid, lock = _claim(ids)
    try:
        yield Identity(uid)
    finally:
        os.close(lock)  # the kernel drops the lock, also when we are killed before this line


def _claim(ids: range) -> tuple[int, int]:
    _LOCKS.mkdir(mode=0o700, parents=True, exist_ok=True)
    first = secrets.randbelow(len(ids))
    for step in range(len(ids)):
        uid = ids[(first + step) % len(ids)]
        lock = os.open(_LOCKS / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return uid, lock
    raise SandboxError(f"all {len(ids)} sandbox user ids are in use; stop other runs on this host")


def _range() -> range | None:
    """The id range to use, or None where root is only mapped from an ordinary user (as in rootless containers)."""
    mapped = [_maps(Path("/proc/self/uid_map")), _maps(Path("/proc/self/gid_map"))]
    for ids in _RANGES:
        if all(any(ids.start >= m.start and ids.stop <= m.stop for m in maps) for maps in mapped):
            return ids
    return None


@cache
def _maps(path: Path) -> list[range]:
    rows = [line.split() for line in path.read_text().splitlines()]
    return [range(int(first), int(first) + int(count)) for first, _, count in rows]
