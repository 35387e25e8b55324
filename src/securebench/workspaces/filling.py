"""Fills a workspace that is being built with a whole tree, adding only what is not there yet.

What is there wins: public assets and our own files are laid down first, and an image's or a repository's files come
around them. Directories merge. The tree is a private directory of ours or a read-only image; entries are opened from
descriptors; links are copied as text and never followed, wherever they lead."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from securebench._fs import CHUNK, EPOCH_NS, MAX_DEPTH
from securebench.errors import ConfigError, PackError
from securebench.workspaces.limits import WorkspaceBudget

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Unwanted = Callable[[bytes, bool], str | None]
"""Why a path (and whether it is a directory) is not taken over, or None."""


def take_all(path: bytes, is_dir: bool) -> str | None:  # noqa: ARG001 — the shape of `Unwanted`
    """Nothing is unwanted."""
    return None


@dataclass(slots=True)
class Filling:
    """One workspace being filled. `ours` are the places of the framework's own files."""

    root: int
    budget: WorkspaceBudget
    ours: frozenset[bytes] = frozenset()
    unwanted: Unwanted = take_all
    keep_times: bool = False
    move: bool = False  # the source is a private directory of ours on the same file system, and not needed afterwards
    left_out: list[tuple[bytes, str]] = field(default_factory=list)

    def copy(self, source: int) -> None:
        """Take over everything in the directory `source`. Raises PackError, ConfigError, OSError."""
        self._directory(source, self.root, b"", os.fstat(source).st_dev)

    def _directory(self, source: int, target: int, path: bytes, device: int) -> None:
        if path.count(b"/") >= MAX_DEPTH:
            raise PackError(f"{_shown(path)} is nested too deeply")
        for name in sorted(map(os.fsencode, os.listdir(source))):
            below = path + b"/" + name if path else name
            status = os.stat(name, dir_fd=source, follow_symlinks=False)
            reason = self.unwanted(below, stat.S_ISDIR(status.st_mode))
            if reason is None and status.st_dev != device:
                reason = "on another file system"
            if reason is not None:
                self.left_out.append((below, reason))
            elif stat.S_ISDIR(status.st_mode):
                self._enter(source, target, name, below, device)
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                try:
                    self._put(source, target, name, status)
                except FileExistsError:
                    self._hidden(below)
            else:
                self.left_out.append((below, "a device, socket or FIFO"))

    def _enter(self, source: int, target: int, name: bytes, path: bytes, device: int) -> None:
        self.budget.take(0)
        try:
            os.mkdir(name, 0o755, dir_fd=target)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=target, follow_symlinks=False).st_mode):
                self._hidden(path)
                return
        inside = os.open(name, _DIRECTORY, dir_fd=source)
        try:
            outside = os.open(name, _DIRECTORY, dir_fd=target)
            try:
                os.fchmod(outside, 0o755)  # whatever the umask is
                self._directory(inside, outside, path, device)
            finally:
                os.close(outside)
        finally:
            os.close(inside)

    def _hidden(self, path: bytes) -> None:
        """An asset in its place hides what came with the tree; our own files must not."""
        if any(own == path or own.startswith(path + b"/") for own in self.ours):
            raise ConfigError(
                f"the workspace holds its own {_shown(path)}, where a file of the framework must be; "
                "choose another harness.config.task_file, or rename it in the pack"
            )
        self.left_out.append((path, "replaced by a public asset"))

    def _put(self, source: int, target: int, name: bytes, status: os.stat_result) -> None:
        mode = 0o755 if status.st_mode & 0o111 else 0o644
        times = (status.st_mtime_ns, status.st_mtime_ns) if self.keep_times else (EPOCH_NS, EPOCH_NS)
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
            self.budget.take(0)
            return
        self.budget.take(status.st_size)
        if self.move:
            os.link(name, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            os.unlink(name, dir_fd=source)
            os.chmod(name, mode, dir_fd=target)
            os.utime(name, ns=times, dir_fd=target)
            return
        new = os.open(name, _NEW, 0o600, dir_fd=target)
        try:
            old = os.open(name, _FILE, dir_fd=source)
            try:
                _copy_bytes(old, new)
            finally:
                os.close(old)
            os.fchmod(new, mode)
            os.utime(new, ns=times)
        finally:
            os.close(new)


def _copy_bytes(source: int, target: int) -> None:
    while chunk := os.read(source, CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]


def _shown(path: bytes) -> str:
    return ascii(path.decode("utf-8", "backslashreplace")[:200])
