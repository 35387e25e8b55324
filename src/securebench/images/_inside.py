"""Finds directories inside a root file system that is being built, the way a process living in it would.

Links are resolved by us, one component at a time, each opened from its parent's descriptor without following
anything; `..` and absolute links stop at the root. The kernel never resolves a link for us, so no link leads out."""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from typing import NamedTuple

from securebench._fs import UnsafeEntry
from securebench.images.budget import Budget

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT = 64  # descriptors; members of one directory come together
MAX_NAME = 255


class Place(NamedTuple):
    """A directory inside: an open descriptor, and its real path from the root (empty for the root itself)."""

    descriptor: int
    path: bytes

    def child(self, name: bytes) -> bytes:
        return self.path + b"/" + name if self.path else name


def split_name(name: bytes, limit: int) -> list[bytes]:
    """The parts of a member's name; none for the root itself. Raises UnsafeEntry with the rule that was broken.

    A leading `/` means the root file system's own root, as image builders use it."""
    if b"\0" in name:
        raise UnsafeEntry("its name contains a NUL byte")
    if len(name) > limit:
        raise UnsafeEntry(f"its name is longer than {limit} bytes")
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise UnsafeEntry("its name contains '..'")
    if any(len(part) > MAX_NAME for part in parts):
        raise UnsafeEntry(f"a part of its name is longer than {MAX_NAME} bytes")
    return parts


class Inside:
    """Looks up directories by the text of a path. Use as a context manager; it owns the descriptors it hands out."""

    def __init__(self, root: int, budget: Budget) -> None:
        self._root = root
        self._budget = budget
        self._known: OrderedDict[bytes, Place] = OrderedDict()

    def __enter__(self) -> Inside:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.forget()

    def forget(self) -> None:
        """Must be called when a directory or a link was removed: paths may lead elsewhere now."""
        for place in self._known.values():
            os.close(place.descriptor)
        self._known.clear()

    def find(self, parts: list[bytes], *, create: bool) -> Place | None:
        """The directory at `parts`, valid until the next call. Missing ones are made, or the answer is None.

        Raises UnsafeEntry where a file is in the way, links lead round in circles, or it lies too deep."""
        key = b"/".join(parts)
        place = self._known.get(key)
        if place is not None:
            self._known.move_to_end(key)
            return place
        place = self._walk(parts, create)
        if place is not None:
            self._known[key] = place
            if len(self._known) > _KEPT:
                os.close(self._known.popitem(last=False)[1].descriptor)
        return place

    def _walk(self, parts: list[bytes], create: bool) -> Place | None:
        pending = parts[::-1]
        resolved: list[bytes] = []
        current = os.dup(self._root)
        links = 0
        try:
            while pending:
                name = pending.pop()
                self._budget.add_steps(1)
                if name in (b"", b"."):
                    continue
                if name == b"..":
                    current = self._replace(current, self._reopen(resolved[:-1]))
                    resolved = resolved[:-1]
                    continue
                following = self._enter(current, name, create)
                if following is None:
                    return None
                if isinstance(following, bytes):
                    links += 1
                    self._check_links(links)
                    if following.startswith(b"/"):
                        current, resolved = self._replace(current, os.dup(self._root)), []
                    pending += following.split(b"/")[::-1]
                    continue
                current = self._replace(current, following)
                resolved.append(name)
                self._check_depth(len(resolved))
            found, current = Place(current, b"/".join(resolved)), -1
            return found
        finally:
            if current >= 0:
                os.close(current)

    def _enter(self, directory: int, name: bytes, create: bool) -> int | bytes | None:
        """A descriptor on the directory `name`, the target of the link `name`, or None when there is nothing."""
        try:
            return os.open(name, _DIRECTORY, dir_fd=directory)
        except FileNotFoundError:
            if not create:
                return None
            os.mkdir(name, 0o700, dir_fd=directory)
            return os.open(name, _DIRECTORY, dir_fd=directory)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
        try:
            return os.readlink(name, dir_fd=directory)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise UnsafeEntry("something on the way to it is not a directory") from None

    def _reopen(self, resolved: list[bytes]) -> int:
        self._budget.add_steps(len(resolved))
        current = os.dup(self._root)
        try:
            for name in resolved:
                current = self._replace(current, os.open(name, _DIRECTORY, dir_fd=current))
        except BaseException:
            os.close(current)
            raise
        return current

    def _replace(self, old: int, new: int) -> int:
        os.close(old)
        return new

    def _check_links(self, links: int) -> None:
        if links > self._budget.limits.links_followed:
            raise UnsafeEntry(f"more than {self._budget.limits.links_followed} links on the way to it")

    def _check_depth(self, depth: int) -> None:
        if depth > self._budget.limits.depth:
            raise UnsafeEntry(f"more than {self._budget.limits.depth} directories deep")
