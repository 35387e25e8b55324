"""Where fetched tools are kept, by content.

```
ROOT/
  .lock                     held while an overlay appears or goes
  fetch-<tool>.lock         held by the one process that fetches that tool
  sha256/<digest>/          overlay.json (its digest is the directory's name), tree/
  tmp/                      fetches under way, each locked by its process; what is not locked is left over and goes
```

`overlay.json` names the digest of the tree, so the directory's name vouches for everything beneath it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import anyio
from pydantic import ValidationError

from securebench import _json
from securebench._canonical import digest_bytes
from securebench._fs import open_directory
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError, StoreError, os_reason
from securebench.harnesses.tools.description import Libc
from securebench.images import default_root
from securebench.images._names import write_durably
from securebench.images._shelf import Shelf
from securebench.images._tree import TreeSummary, summarize_tree

Signature = tuple[tuple[str, int, int, int, int, int], ...]

_RECORD = 256 * 1024


class Package(ClosedModel):
    """A package as it came, and where in the overlay it lies."""

    name: str
    version: str
    integrity: str
    at: str


class OverlayRecord(ClosedModel):
    """`overlay.json`: what an overlay was made of. Says nothing about when or where, so equal content is equal."""

    format: int = 1
    tool: str
    version: str
    machine: str
    libc: Libc
    program: tuple[str, ...]  # relative to the tree
    version_argument: str
    packages: tuple[Package, ...]
    tree: str
    files: int
    bytes: int

    @property
    def label(self) -> str:
        return f"{self.tool}@{self.version}"


class ToolCache:
    """Finds, adds and removes overlays. Any number of processes may use the same cache."""

    def __init__(self, root: Path | None = None) -> None:
        self._shelf = Shelf(root or default_root().parent / "tools", "tool cache")

    @property
    def root(self) -> Path:
        return self._shelf.root

    def directory(self, digest: str) -> Path:
        return self._shelf.image(digest)

    def tree(self, digest: str) -> Path:
        return self.directory(digest) / "tree"

    def entries(self) -> Iterator[tuple[str, OverlayRecord | None]]:
        """Every overlay by digest; None where its record is damaged. Raises StoreError."""
        try:
            digests = self._shelf.digests()
        except OSError as error:
            raise StoreError(f"tool cache {self.root} {os_reason(error)}") from error
        for digest in digests:
            yield digest, self._record(digest)

    def find(self, tool: str, version: str, machine: str, libc: Libc) -> tuple[str, OverlayRecord] | None:
        """The overlay of that name. One with a damaged record is none, so it is fetched again."""
        for digest, record in self.entries():
            if record and (record.tool, record.version, record.machine, record.libc) == (tool, version, machine, libc):
                return digest, record
        return None

    def verify(self, digest: str, record: OverlayRecord) -> None:
        """Compare every byte with the record. Raises IntegrityError, also when something was added."""
        try:
            with open_directory(self.tree(digest)) as tree:
                found = summarize_tree(tree).digest
        except OSError as error:
            raise IntegrityError(f"{self._changed(digest, record)} ({error.strerror})") from error
        if found != record.tree:
            raise IntegrityError(f"{self._changed(digest, record)} (tree {found}, recorded {record.tree})")

    def signature(self, digest: str, record: OverlayRecord) -> Signature:
        """What differs as soon as anything in the tree does, without reading a file. Raises IntegrityError."""
        try:
            return _signature_of(self.tree(digest))
        except OSError as error:
            raise IntegrityError(f"{self._changed(digest, record)} ({error.strerror})") from error

    def workspace(self) -> AbstractContextManager[Path]:
        """An empty directory on the cache's file system, gone afterwards. Raises StoreError."""
        return self._shelf.workspace()

    def add(self, built: Path, record: OverlayRecord) -> str:
        """Let `built`, which holds `tree/`, appear under its digest."""
        data = (_json.dumps(record.model_dump(mode="json")) + "\n").encode()
        digest = digest_bytes(data)
        write_durably(built / "overlay.json", data)
        for path in (built, built / "tree"):
            path.chmod(0o755)
        (built / "overlay.json").chmod(0o644)
        with self._shelf.locked():
            if self.directory(digest).exists():
                self._shelf.take_away(digest)  # damaged: nobody fetches what is there and whole
            built.rename(self.directory(digest))
        return digest

    def remove(self, digest: str) -> None:
        with self._shelf.locked():
            self._shelf.take_away(digest)
            self._shelf.sweep()

    @asynccontextmanager
    async def fetching(self, tool: str, on_progress: Callable[[str], None]) -> AsyncIterator[None]:
        """Only one process at a time is in here for a tool. Raises StoreError."""
        with self._shelf.locked():
            pass  # makes the directories
        try:
            lock = os.open(
                self.root / f"fetch-{tool}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except OSError as error:
            raise StoreError(f"tool cache {self.root}: {error.strerror}") from error
        try:
            if not _locked(lock):
                on_progress(f"another process is fetching {tool}; waiting for it")
                while not _locked(lock):
                    await anyio.sleep(0.2)
            yield
        finally:
            os.close(lock)

    def _record(self, digest: str) -> OverlayRecord | None:
        try:
            data = (self.directory(digest) / "overlay.json").read_bytes()
            if len(data) > _RECORD or digest_bytes(data) != digest:
                return None
            return OverlayRecord.model_validate_json(data)
        except (OSError, ValidationError):
            return None

    def _changed(self, digest: str, record: OverlayRecord) -> str:
        return (
            f"{self.tree(digest)} was changed after it was fetched; remove it with "
            f"`securebench tools rm {record.label}` and fetch it again"
        )


def summary_of(tree: Path) -> TreeSummary:
    """Counts and the digest of a finished tree."""
    with open_directory(tree) as descriptor:
        return summarize_tree(descriptor)


def _signature_of(tree: Path) -> Signature:
    found = []
    for parent, directories, names in os.walk(tree):
        for name in (".", *directories, *names):
            path = Path(parent, name)
            status = os.lstat(path)  # the kernel keeps the change time; nobody can set it back
            found.append(
                (str(path), status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            )
    return tuple(sorted(found))


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
