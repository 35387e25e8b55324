"""Names for what could outlive a killed engine, so that the next one can find and remove it.

A temporary directory or control group of ours is called `securebench-<pid>-<start time>-<suffix>`: the first two
name the process it belongs to without ever mistaking a later process with the same number for it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from securebench._proc import Handle
from securebench._removal import remove_tree

_PREFIX = "securebench"
_MARK = "SECUREBENCH_OWNER"


def owned_name(suffix: str) -> str:
    """A name that says which live process it belongs to."""
    pid = os.getpid()
    return f"{_PREFIX}-{pid}-{_start_time(pid)}-{suffix}"


def is_stale(name: str) -> bool:
    """Whether `name` is one of ours and its process no longer lives."""
    parts = name.split("-", 3)
    if len(parts) < 3 or parts[0] != _PREFIX or not (parts[1].isdigit() and parts[2].isdigit()):
        return False
    try:
        return start_time(int(parts[1])) != int(parts[2])
    except (FileNotFoundError, ProcessLookupError):
        return True


def start_time(pid: int) -> int:
    """When a process started, in clock ticks since boot. Raises FileNotFoundError or ProcessLookupError when it is
    gone; one that has ended is, also where nobody has reaped it."""
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if state in "ZX":
        raise ProcessLookupError(f"process {pid} has ended")
    return int(fields[18])


@cache
def _start_time(pid: int) -> int:
    return start_time(pid)


@contextmanager
def staging_directory() -> Iterator[Path]:
    """A private directory of ours that other users may pass through but not list. Removed at the end."""
    path = Path(tempfile.mkdtemp(prefix=owned_name("")))
    try:
        path.chmod(0o711)
        yield path
    finally:
        with suppress(OSError):  # what cannot be removed now is found by `clean_directories`
            remove_tree(path)


def owner_mark() -> dict[str, str]:
    """The environment that says whose process it is; what runs inside a sandbox never gets it."""
    return {_MARK: owned_name("process")}


def clean_processes() -> list[str]:
    """End processes we marked whose engine is gone; what was ended.

    Normally everything dies with its engine. But an engine killed within the first millisecond of a sandbox leaves a
    process behind that waits for bubblewrap for ever; nothing runs in it.
    """
    ended = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            handle = Handle(int(entry.name))  # before looking, so that what is ended is what was seen
            marks = [item for item in (entry / "environ").read_bytes().split(b"\0") if item.startswith(_MARK.encode())]
            if any(is_stale(mark.partition(b"=")[2].decode("ascii", "replace")) for mark in marks):
                handle.kill()
                ended.append(f"process {entry.name}")
            handle.close()
    return ended


def clean_directories() -> list[str]:
    """Remove staging directories whose engine is gone; what was removed."""
    removed = []
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}-*"):
        with suppress(OSError):  # another engine that starts now may be faster
            if is_stale(path.name) and not path.is_symlink() and path.stat().st_uid == os.getuid():
                remove_tree(path)
                removed.append(str(path))
    return removed
