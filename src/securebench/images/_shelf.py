"""The directories of a store by content: its lock, its work in progress, and what a crash left behind."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from securebench.errors import StoreError
from securebench.images._tree import remove_entry

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Shelf:
    """Where a store lies on disk. `what` names it in messages."""

    def __init__(self, root: Path, what: str = "image store") -> None:
        self.root = root
        self._what = what
        self.names = root / "names.json"
        self.images = root / "sha256"
        self._work = root / "tmp"

    def image(self, digest: str) -> Path:
        return self.images / digest.removeprefix("sha256:")

    def digests(self) -> list[str]:
        """Every image there is."""
        try:
            return sorted(f"sha256:{path.name}" for path in self.images.iterdir())
        except FileNotFoundError:
            return []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes the store meanwhile. Raises StoreError when it cannot be written."""
        with self._guarded():
            # Sandboxes started by root run as another user, who must get through; an ordinary user's run as itself.
            _make_open(self.root, 0o755 if os.geteuid() == 0 else 0o700)
            for path in (self.images, self._work):
                _make_open(path, 0o755)
            lock = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with self._guarded():
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        finally:
            os.close(lock)

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """An empty directory on the store's file system, gone afterwards, also after a crash."""
        with self.locked():
            self.sweep()
            path = Path(tempfile.mkdtemp(dir=self._work, prefix="import-"))
            lock = os.open(path, _DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with self._guarded():
                yield path
        finally:
            try:
                self._discard(path.name)
            finally:
                os.close(lock)

    def sweep(self) -> None:
        """Remove what no living process is working on. The caller holds the lock."""
        for path in list(self._work.iterdir()):
            try:
                lock = os.open(path, _DIRECTORY)
            except FileNotFoundError:
                continue  # an import that just ended
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._discard(path.name)
            except BlockingIOError:
                continue  # an import under way
            finally:
                os.close(lock)

    def take_away(self, digest: str) -> None:
        """Make an image disappear at once, then delete it. The caller holds the lock."""
        target = Path(tempfile.mkdtemp(dir=self._work, prefix="remove-"))
        self.image(digest).rename(target / "image")
        self._discard(target.name)

    def _discard(self, name: str) -> None:
        parent = os.open(self._work, _DIRECTORY)
        try:
            with suppress(FileNotFoundError):
                remove_entry(parent, os.fsencode(name))
        finally:
            os.close(parent)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise StoreError(
                f"{self._what} {self.root}: {reason}; free some space or set SECUREBENCH_HOME to another directory"
            ) from error


def _make_open(path: Path, mode: int) -> None:
    """Make a directory and those above it with this mode, whatever the umask is; one that is there stays as it is."""
    if path.is_dir():
        return
    if not path.parent.is_dir():
        _make_open(path.parent, mode)
    with suppress(FileExistsError):  # somebody else was faster
        path.mkdir(mode=mode)
        path.chmod(mode)
