"""Removes a directory tree, whatever is in it: any depth, any mode, any names, links that lead anywhere.

Nothing is followed and no path is ever built: entries are reached through the descriptor of the directory they are in.
A directory's subdirectories are first moved up beneath the top, so however deep a tree is, two descriptors are open
and nothing recurses. For trees nobody changes any more; a process that still writes there can only make it fail.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> None:
    """Remove `path` and all beneath it; a path that does not exist is no error, a link is only unlinked.

    Raises OSError with the first reason when something could not be removed; the rest is removed all the same."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not _is_directory(path.name, parent):
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=parent)
            return
        problems = _empty_top(path.name, parent)
        try:
            os.rmdir(path.name, dir_fd=parent)
        except OSError as error:
            raise problems[0] if problems else error from None
    finally:
        os.close(parent)


def _empty_top(name: str, parent: int) -> list[OSError]:
    prefix = f".{secrets.token_hex(8)}-"  # no name in the tree can be meant to collide
    moved, stuck = 0, set[str]()
    problems: list[OSError] = []
    top = _open(name, parent)
    try:
        device = os.fstat(top).st_dev
        while names := [name for name in os.listdir(top) if name not in stuck]:  # noqa: PTH208
            for name in names:  # noqa: PLR1704
                try:
                    moved = _remove_entry(name, top, device, prefix, moved)
                except OSError as error:
                    problems.append(error)
                    stuck.add(name)
    finally:
        os.close(top)
    return problems


def _remove_entry(name: str, top: int, device: int, prefix: str, moved: int) -> int:
    """Remove one entry of the top; what it held of directories is in the top afterwards. The new count of those."""
    if not _is_directory(name, top):
        os.unlink(name, dir_fd=top)
        return moved
    with suppress(OSError):
        os.rmdir(name, dir_fd=top)  # most are empty by the time it is their turn
        return moved
    descriptor = _open(name, top)
    try:
        if os.fstat(descriptor).st_dev != device:
            raise OSError(f"{name!a} lies on another file system")
        for inner in os.listdir(descriptor):  # noqa: PTH208
            if _is_directory(inner, descriptor):
                _move(inner, descriptor, f"{prefix}{moved}", top)
                moved += 1
            else:
                os.unlink(inner, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=top)
    return moved


def _move(name: str, directory: int, new: str, top: int) -> None:
    try:
        os.rename(name, new, src_dir_fd=directory, dst_dir_fd=top)
    except PermissionError:
        _unlock(name, directory)
        os.rename(name, new, src_dir_fd=directory, dst_dir_fd=top)


def _is_directory(name: str, directory: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _open(name: str, directory: int) -> int:
    """A directory that can be listed and written, made so where it is not."""
    with suppress(PermissionError):
        descriptor = os.open(name, _DIRECTORY, dir_fd=directory)
        with suppress(OSError):
            os.fchmod(descriptor, 0o700)
        return descriptor
    _unlock(name, directory)
    return os.open(name, _DIRECTORY, dir_fd=directory)


def _unlock(name: str, directory: int) -> None:
    """Give ourselves every right on a directory without opening it, which needs one of them, or following a link."""
    descriptor = os.open(name, getattr(os, "O_PATH", 0) | _DIRECTORY, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101
    finally:
        os.close(descriptor)
