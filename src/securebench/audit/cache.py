"""Results that are kept in the user's cache for a while. A file is believed only if it is ours alone."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

CACHE_SETTING = "SECUREBENCH_CACHE"


def cache_directory() -> Path:
    """`$SECUREBENCH_CACHE`, or securebench in the user's cache directory. Raises RuntimeError without a home."""
    if named := os.environ.get(CACHE_SETTING):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "securebench"


def place(kind: str, key: str) -> Path | None:
    """Where a result with that key is kept; None where nothing can be."""
    try:
        return cache_directory() / f"{kind}-{key[:32]}.json"
    except RuntimeError:
        return None


def read_own(path: Path, most: int) -> bytes | None:
    """What is in a file of ours that nobody else can write; None for any other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        ours = seen.st_uid == os.geteuid() and stat.S_ISREG(seen.st_mode) and seen.st_nlink == 1
        if not ours or stat.S_IMODE(seen.st_mode) != 0o600 or seen.st_size > most:
            return None
        return file.read(most + 1)


def write_own(path: Path, text: str, lifetime: float) -> None:
    """Write it beside its final name and move it there, and forget those of its kind that are older than `lifetime`.
    A cache that cannot be written is no harm."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o600)
            file.write(text)
        temporary.replace(path)
        now = time.time()
        for old in path.parent.glob(f"{path.name.partition('-')[0]}-*.json*"):
            if now - old.lstat().st_mtime > lifetime:
                old.unlink(missing_ok=True)
    except OSError:
        return
