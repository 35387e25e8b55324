"""A captured tree as plain values: what lies where, of which kind and mode, with which bytes.

Two trees are the same evidence if their digests are equal: a digest pins every path, kind, mode, size and content.
Contents are named by digest and lie in the `CandidateStore`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from securebench._canonical import digest_bytes
from securebench.candidates.entry_names import link_problem, name_problem

PLAIN, EXECUTABLE = 0o644, 0o755
DIRECTORY_MODE, LINK_MODE = 0o755, 0o777
_path = itemgetter(0)
MAX_DEPTH = 1024  # of any tree at all; captures have a smaller budget
_KEYS = {"path", "kind", "mode", "size", "digest", "target"}


class EntryKind(StrEnum):
    """What may be in a captured tree."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"


class TreeEntry(NamedTuple):
    """One entry. `path` is relative with `/`; `digest` is `sha256:…` of a file's bytes or of a link's target text,
    and empty for a directory; `target` is a link's text.

    A named tuple, because there are many: it costs a fifth of a frozen dataclass to make."""

    path: str
    kind: EntryKind
    mode: int
    size: int
    digest: str
    target: str | None = None

    @classmethod
    def directory(cls, path: str) -> TreeEntry:
        return cls(path, EntryKind.DIRECTORY, DIRECTORY_MODE, 0, "")

    @classmethod
    def file(cls, path: str, digest: str, size: int, executable: bool = False) -> TreeEntry:
        return cls(path, EntryKind.FILE, EXECUTABLE if executable else PLAIN, size, digest)

    @classmethod
    def link(cls, path: str, target: str) -> TreeEntry:
        text = target.encode()
        return cls(path, EntryKind.LINK, LINK_MODE, len(text), digest_bytes(text), target)

    @property
    def line(self) -> str:
        """One line of what a digest is made of. No path holds a line break, so lines cannot run into each other."""
        return f"{self.kind} {self.mode:o} {self.size} {self.digest or '-'} {self.path}\n"

    def as_json(self) -> dict[str, Any]:
        value = {"path": self.path, "kind": str(self.kind), "mode": self.mode, "size": self.size, "digest": self.digest}
        return value if self.target is None else {**value, "target": self.target}

    @classmethod
    def from_json(cls, value: Any) -> TreeEntry:
        """Raises ValueError for anything that `as_json` does not write."""
        if not isinstance(value, dict) or not value.keys() <= _KEYS or not _KEYS - {"target"} <= value.keys():
            raise ValueError("an entry has missing or unknown keys")
        texts = (value["path"], value["kind"], value["digest"])
        numbers = (value["mode"], value["size"])
        if not all(isinstance(text, str) for text in texts) or not all(type(number) is int for number in numbers):
            raise ValueError("an entry has a value of the wrong type")
        target = value.get("target")
        if "target" in value and not isinstance(target, str):
            raise ValueError("an entry has a value of the wrong type")
        entry = cls(value["path"], EntryKind(value["kind"]), value["mode"], value["size"], value["digest"], target)
        entry.check()
        return entry

    def check(self) -> None:
        """Raises ValueError naming the path and the rule it breaks."""
        parts = self.path.split("/")
        if len(parts) > MAX_DEPTH or any(name_problem(part) for part in parts):
            raise ValueError(f"{self.path!a} is not a path of a captured tree")
        if self.kind is EntryKind.FILE:
            fine = self.mode in (PLAIN, EXECUTABLE) and self.size >= 0 and is_digest(self.digest)
            fine = fine and self.target is None
        elif self.kind is EntryKind.DIRECTORY:
            fine = self == TreeEntry.directory(self.path)
        else:
            fine = self.target is not None and link_problem(self.path, self.target) is None
            fine = fine and self == TreeEntry.link(self.path, self.target or "")
        if not fine:
            raise ValueError(f"{self.path} has a mode, size, digest or target that a {self.kind} cannot have")


def is_digest(text: str) -> bool:
    """Whether this is `sha256:` and 64 lower-case hexadecimal digits."""
    return len(text) == 71 and text.startswith("sha256:") and not text[7:].strip("0123456789abcdef")


@dataclass(frozen=True)
class Tree:
    """Entries sorted by path, each beneath a directory that is also an entry. Raises ValueError otherwise."""

    entries: tuple[TreeEntry, ...] = ()

    def __post_init__(self) -> None:
        directories = {""}
        before = ""
        for entry in self.entries:
            path = entry.path
            if path <= before:
                raise ValueError(f"{path!a} is not in order, or is there twice")
            if path.rpartition("/")[0] not in directories:
                raise ValueError(f"{path!a} does not lie in a directory of the tree")
            if entry.kind is EntryKind.DIRECTORY:
                directories.add(path)
            before = path

    @classmethod
    def of(cls, entries: Iterable[TreeEntry]) -> Tree:
        return cls(tuple(sorted(entries, key=_path)))

    @cached_property
    def digest(self) -> str:
        return _digest_lines("tree", (entry.line for entry in self.entries))

    @cached_property
    def _by_path(self) -> Mapping[str, TreeEntry]:
        return {entry.path: entry for entry in self.entries}

    def get(self, path: str) -> TreeEntry | None:
        return self._by_path.get(path)

    @cached_property
    def files(self) -> tuple[TreeEntry, ...]:
        """The regular files."""
        return tuple(entry for entry in self.entries if entry.kind is EntryKind.FILE)

    @cached_property
    def total_bytes(self) -> int:
        return sum(entry.size for entry in self.files)

    def as_json(self) -> dict[str, Any]:
        return {"entries": [entry.as_json() for entry in self.entries]}

    @classmethod
    def from_json(cls, value: Any) -> Tree:
        """Raises ValueError for anything that `as_json` does not write."""
        return cls(entries_from_json(value, "entries", {"entries"}))


def entries_from_json(value: Any, key: str, keys: set[str]) -> tuple[TreeEntry, ...]:
    if not isinstance(value, dict) or value.keys() != keys or not isinstance(value[key], list):
        raise ValueError(f"not an object with {', '.join(sorted(keys))}")
    return tuple(TreeEntry.from_json(item) for item in value[key])


def _digest_lines(what: str, lines: Iterable[str]) -> str:
    sha = hashlib.sha256(f"securebench {what} 1\n".encode())
    sha.update("".join(lines).encode())
    return "sha256:" + sha.hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One path that exists before and after, with another content, mode or kind."""

    before: TreeEntry
    after: TreeEntry

    @property
    def path(self) -> str:
        return self.after.path


@dataclass(frozen=True)
class Delta:
    """What really changed between two trees, each part sorted by path. A kind that changed is a change of its path,
    and additions or deletions of what lay beneath it."""

    added: tuple[TreeEntry, ...] = ()
    changed: tuple[Change, ...] = ()
    deleted: tuple[TreeEntry, ...] = ()

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every path that is not as it was, sorted."""
        return tuple(sorted(item.path for part in (self.added, self.changed, self.deleted) for item in part))

    @cached_property
    def digest(self) -> str:
        lines = [f"+ {entry.line}" for entry in self.added]
        lines += [f"~ {change.before.line}= {change.after.line}" for change in self.changed]
        lines += [f"- {entry.line}" for entry in self.deleted]
        return _digest_lines("delta", lines)

    @cached_property
    def size(self) -> int:
        """Bytes of content that are new."""
        return sum(entry.size for entry in self.added) + sum(change.after.size for change in self.changed)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted)

    def as_json(self) -> dict[str, Any]:
        return {
            "added": [entry.as_json() for entry in self.added],
            "changed": [{"before": c.before.as_json(), "after": c.after.as_json()} for c in self.changed],
            "deleted": [entry.as_json() for entry in self.deleted],
        }

    @classmethod
    def from_json(cls, value: Any) -> Delta:
        """Raises ValueError for anything that `as_json` does not write."""
        keys = {"added", "changed", "deleted"}
        added, deleted = entries_from_json(value, "added", keys), entries_from_json(value, "deleted", keys)
        if not isinstance(value["changed"], list):
            raise ValueError("the changes of a delta are not a list")
        delta = cls(added, tuple(_change(item) for item in value["changed"]), deleted)
        for part in (delta.added, delta.changed, delta.deleted):
            paths = [item.path for item in part]
            if paths != sorted(paths):
                raise ValueError("a delta is not in order")
        if len(set(delta.paths)) != len(delta.paths):
            raise ValueError("a delta names a path twice")
        return delta


def _change(value: Any) -> Change:
    if not isinstance(value, dict) or value.keys() != {"before", "after"}:
        raise ValueError("a change has missing or unknown keys")
    change = Change(TreeEntry.from_json(value["before"]), TreeEntry.from_json(value["after"]))
    if change.before.path != change.after.path or change.before == change.after:
        raise ValueError(f"{change.path} is not a change of one path")
    return change


def delta_between(pristine: Tree, captured: Tree) -> Delta:
    """What changed from one tree to the other."""
    added = tuple(entry for entry in captured.entries if pristine.get(entry.path) is None)
    deleted = tuple(entry for entry in pristine.entries if captured.get(entry.path) is None)
    changed = tuple(
        Change(before, entry)
        for entry in captured.entries
        if (before := pristine.get(entry.path)) is not None and before != entry
    )
    return Delta(added, changed, deleted)


def apply_delta(pristine: Tree, delta: Delta) -> Tree:
    """The tree that the delta leads to. Raises ValueError unless the delta was taken from exactly this tree."""
    entries = {entry.path: entry for entry in pristine.entries}
    for before in (*delta.deleted, *(change.before for change in delta.changed)):
        if entries.pop(before.path, None) != before:
            raise ValueError(f"{before.path} is not what the delta was taken from")
    for after in (*delta.added, *(change.after for change in delta.changed)):
        if after.path in entries:
            raise ValueError(f"{after.path} is there already")
        entries[after.path] = after
    return Tree.of(entries.values())
