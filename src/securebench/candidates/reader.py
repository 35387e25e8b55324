"""The strict reader: takes over a tree that hostile code wrote, once, as bytes.

Rules, whatever the tree holds and whoever changes it meanwhile:

- every entry is opened relative to the root's descriptor: beneath it, through no link, on the same mount, without
  waiting; what is opened is looked at again before it is read;
- regular files and directories are captured, and links whose text stays beneath the root, as links; hard links
  become files of their own; of a mode only the executable bit is kept; owners, times, attributes are not;
- sockets, FIFOs, devices, other links, names outside the grammar and what cannot be opened are left out and listed,
  with what lies beneath them;
- a budget that is exceeded is a CandidateError naming the entry; nothing is read beyond it, and of no file more than
  it held when it was opened, so a capture ends;
- it walks without recursion, holds a few descriptors at a time, and no file in memory that is not small.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import NoReturn, Protocol

from securebench import _fs
from securebench.candidates._blob_writing import SMALL, Batch, read_up_to, unreadable
from securebench.candidates._openers import Openers, PortableOpeners, openers_for
from securebench.candidates.captured import Budget, Captured, LeftOut
from securebench.candidates.entry_names import IS_UTF8, is_plain, link_problem, name_problem, shown, text_of
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import EXECUTABLE, PLAIN, EntryKind, Tree, TreeEntry
from securebench.errors import CandidateError, FailureReason, InfrastructureError, StoreError

Progress = Callable[[int, int], None]
"""Called now and then with the entries met and the bytes taken so far."""


class Exclude(Protocol):
    """What is no part of a capture, such as `PathPatterns`."""

    def match(self, path: str) -> str | None:
        """What covers this path, in words for the record, or None."""
        ...


_EVERY = 2000
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ENOSYS})
_REASONS = {
    errno.ENOENT: "vanished while the tree was read",
    errno.ELOOP: "became a link while the tree was read",
    errno.ENOTDIR: "changed its kind while the tree was read",
    errno.EINVAL: "changed its kind while the tree was read",
    errno.EXDEV: "lies on another file system",
    errno.EACCES: "cannot be read (permission denied)",
    errno.EPERM: "cannot be read (permission denied)",
}
_DEFAULT = Budget()
_first = itemgetter(0)
_new = tuple.__new__


def read_tree(
    root: int,
    store: CandidateStore,
    budget: Budget = _DEFAULT,
    exclude: Exclude | None = None,
    progress: Progress | None = None,
    *,
    portable: bool = False,
) -> Captured:
    """Capture the tree at a directory descriptor into the store.

    What `exclude` covers is left out without being looked at. `portable` does without `openat2` also where the
    kernel has it. Raises CandidateError when a budget is exceeded, StoreError, InfrastructureError."""
    try:
        openers = PortableOpeners(root) if portable else openers_for(root)
    except OSError as error:
        raise InfrastructureError(f"the captured tree cannot be opened: {error.strerror}") from error
    with store.batch() as batch:
        capture = _Capture(openers, batch, budget, exclude, progress)
        capture.run()
    return Captured(Tree.of(capture.entries), tuple(sorted(capture.left_out, key=lambda item: item.path)))


@dataclass(slots=True)
class _Capture:
    openers: Openers
    batch: Batch
    budget: Budget
    exclude: Exclude | None
    progress: Progress | None
    entries: list[TreeEntry] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    _met: int = 0
    _bytes: int = 0
    _path_bytes: int = 0
    _waiting: list[str] = field(default_factory=lambda: [""])
    _linked: dict[tuple[int, ...], tuple[str, int]] = field(default_factory=dict)

    def run(self) -> None:
        while self._waiting:
            self._directory(self._waiting.pop())
        if self.progress is not None:
            self.progress(self._met, self._bytes)

    def _directory(self, path: str) -> None:
        try:
            descriptor = self.openers.directory(path.encode())
        except OSError as error:
            self._failed(path, error)
            if not path:  # such as one that its owner may not enter any more
                message = f"the whole tree {self.left_out[-1].reason}"
                raise CandidateError(FailureReason.CANDIDATE_REFUSED, message) from error
            return
        try:
            if path:
                self.entries.append(TreeEntry.directory(path))
            prefix = f"{path}/" if path else ""
            inner: list[str] = []
            for name, kind in self._names(descriptor, prefix):
                if kind is EntryKind.FILE:
                    self._file(descriptor, prefix + name, name)
                elif kind is EntryKind.DIRECTORY:
                    inner.append(prefix + name)
                elif kind is EntryKind.LINK:
                    self._link(descriptor, prefix + name, name)
                else:
                    self._leave(prefix + name, "a socket, FIFO or device")
            if inner and inner[0].count("/") >= self.budget.depth:
                self._too_much(inner[0], f"is nested more than {self.budget.depth} deep")
            self._waiting.extend(reversed(inner))
        finally:
            os.close(descriptor)

    def _names(self, descriptor: int, prefix: str) -> list[tuple[str, EntryKind | None]]:
        """What a directory holds and is wanted, with the kinds it claims, in order. At most as many as the budget still
        allows."""
        found: dict[str, EntryKind | None] = {}
        left, more = self.budget.files - self._met, False
        try:
            with os.scandir(descriptor) as listing:
                for item in islice(listing, left + 1):
                    found[item.name] = EntryKind.FILE if item.is_file(follow_symlinks=False) else _other_kind(item)
                more = next(listing, None) is not None
        except OSError as error:
            self._failed(prefix or ".", error)
        if more or len(found) > left:
            self._too_much(prefix or ".", f"is where the tree has more than {self.budget.files} entries")
        if not IS_UTF8:
            found = {text_of(name): kind for name, kind in found.items()}
        before, self._met = self._met, self._met + len(found)
        names = "".join(found)
        above = _bytes(prefix)
        self._path_bytes += _bytes(names) + len(found) * above
        if self._path_bytes > self.budget.all_paths:
            self._too_much(prefix, f"is where all paths together have more than {self.budget.all_paths} bytes")
        if self.progress is not None and self._met // _EVERY != before // _EVERY:
            self.progress(self._met, self._bytes)
        # Where all names are plain and no path can be too long, none has to be looked at by itself.
        longest = max(map(len, found), default=0)
        plain = is_plain(names) and longest <= self.budget.name and above + longest < self.budget.path
        if self.exclude is None and plain:
            return sorted(found.items(), key=_first)
        return sorted((item for item in found.items() if self._is_wanted(prefix + item[0], item[0])), key=_first)

    def _is_wanted(self, path: str, name: str) -> bool:
        # Every character has at most four bytes.
        if 4 * len(path) >= self.budget.name and _bytes(name) > self.budget.name:
            self._too_much(path, f"has a name of more than {self.budget.name} bytes")
        if 4 * len(path) >= self.budget.path and _bytes(path) >= self.budget.path:  # the kernel counts the text's end
            self._too_much(path, f"is a path of more than {self.budget.path - 1} bytes")
        if (problem := name_problem(name)) is not None:
            self._leave(path, problem)
            return False
        if self.exclude is not None and (pattern := self.exclude.match(path)) is not None:
            self._leave(path, f"excluded by {pattern}")
            return False
        return True

    def _file(self, directory: int, path: str, name: str) -> None:
        try:
            descriptor = self.openers.file(directory, name.encode())
        except OSError as error:
            self._failed(path, error)
            return
        try:
            status = os.fstat(descriptor)
            mode, size = status.st_mode, status.st_size
            if not stat.S_ISREG(mode):
                self._leave(path, "changed its kind while the tree was read")
                return
            self._bytes += size
            if size > self.budget.file_bytes or self._bytes > self.budget.total_bytes:
                self._too_many_bytes(path, size)
            if status.st_nlink > 1:
                digest, size = self._linked_content(descriptor, status)
            elif size > SMALL:
                digest, size = self._large_content(descriptor, status)
            else:
                data = _read_small(descriptor, size)
                digest, size = self.batch.put_bytes(data), len(data)
        except _fs.UnsafeEntry as error:
            self._leave(path, str(error))
            return
        except OSError as error:
            raise StoreError(f"the candidate store cannot be written: {error.strerror}") from error
        finally:
            os.close(descriptor)
        self.entries.append(
            # As `TreeEntry(…)`, in half the time.
            _new(TreeEntry, (path, EntryKind.FILE, EXECUTABLE if mode & 0o111 else PLAIN, size, digest, None))
        )

    def _too_many_bytes(self, path: str, size: int) -> NoReturn:
        """Holes count like bytes: whoever reads the file later gets all of them."""
        if size > self.budget.file_bytes:
            self._too_much(path, f"has {size} bytes; at most {self.budget.file_bytes} are allowed")
        self._too_much(path, f"is where the files have more than {self.budget.total_bytes} bytes together")

    def _linked_content(self, descriptor: int, status: os.stat_result) -> tuple[str, int]:
        """The same file under several names is read once."""
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if key not in self._linked:
            self._linked[key] = self._large_content(descriptor, status)
        return self._linked[key]

    def _large_content(self, descriptor: int, status: os.stat_result) -> tuple[str, int]:
        return self.batch.put_file(descriptor, status.st_size, sparse=status.st_blocks * 512 < status.st_size)

    def _link(self, directory: int, path: str, name: str) -> None:
        try:
            target = os.readlink(name.encode(), dir_fd=directory).decode("utf-8", "surrogateescape")
        except OSError as error:
            self._failed(path, error)
            return
        if (problem := link_problem(path, target)) is not None:
            self._leave(path, problem)
        else:
            self._path_bytes += _bytes(target)
            if self._path_bytes > self.budget.all_paths:
                self._too_much(path, f"is where all paths together have more than {self.budget.all_paths} bytes")
            self.entries.append(TreeEntry.link(path, target))

    def _failed(self, path: str, error: OSError) -> None:
        if error.errno in _OURS:
            raise InfrastructureError(f"{shown(path)} cannot be captured: {error.strerror}") from error
        self._leave(path, _REASONS.get(error.errno or 0) or f"cannot be read ({(error.strerror or '').lower()})")

    def _leave(self, path: str, reason: str) -> None:
        self.left_out.append(LeftOut(shown(path), reason))

    def _too_much(self, path: str, what: str) -> NoReturn:
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, f"{shown(path)[:500]} {what}")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _other_kind(item: os.DirEntry[str]) -> EntryKind | None:
    """What a directory says that something is which is no file; looked at again once it is open."""
    if item.is_dir(follow_symlinks=False):
        return EntryKind.DIRECTORY
    return EntryKind.LINK if item.is_symlink() else None


def _read_small(descriptor: int, size: int) -> bytes:
    try:
        data = os.read(descriptor, size) if size else b""
        return data if len(data) == size else data + read_up_to(descriptor, size - len(data))
    except OSError as error:
        raise unreadable(error) from error
