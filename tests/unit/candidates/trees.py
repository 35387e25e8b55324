"""Trees as tests write them: a mapping from path to bytes, a link or a directory, on disk or in a store."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from securebench._fs import open_directory
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.captured import Captured
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.families.base import CandidateKind
from securebench.workspaces._git.ignore import IgnoreRules
from securebench.workspaces.exclusion import PatchExclusion
from securebench.workspaces.workspace import Workspace


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Program:
    data: bytes = b""


Content = bytes | str | Link | Program | None
"""None is a directory without entries."""


def write(root: Path, contents: Mapping[str, Content]) -> Path:
    """Write a tree beneath `root`, which is made."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir(exist_ok=True)
        elif isinstance(content, Link):
            place.symlink_to(content.target)
        elif isinstance(content, Program):
            place.write_bytes(content.data)
            place.chmod(0o755)
        else:
            place.write_bytes(content.encode() if isinstance(content, str) else content)
            place.chmod(0o644)
    return root


def capture(root: Path, store: CandidateStore, **how: object) -> Captured:
    with open_directory(root) as descriptor:
        return read_tree(descriptor, store, **how)  # type: ignore[arg-type]


def stored(contents: Mapping[str, Content], store: CandidateStore, work: Path) -> Tree:
    """A tree in the store, by way of the disk."""
    return capture(write(work, contents), store).tree


def changes(work: Path, pristine: Tree, store: CandidateStore, ignored: bytes = b"") -> CandidateArtifact:
    """What a work tree changes of a pristine one, taken as from an agent; `ignored` is the pack's `.gitignore`."""
    tracked = frozenset(entry.path for entry in pristine.entries)
    exclusion = PatchExclusion(tracked, frozenset(), IgnoreRules({(): ignored}))
    with open_directory(work) as root:
        return Workspace("t", CandidateKind.PATCH, work, 0, store, pristine, exclusion).take(root)


def on_disk(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """What really lies there: kind, permission bits and content of every entry."""
    found = {}
    for parent, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(parent) / name
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                entry = ("link", 0, os.readlink(path).encode())
            elif stat.S_ISDIR(status.st_mode):
                entry = ("directory", stat.S_IMODE(status.st_mode), b"")
            else:
                entry = ("file", stat.S_IMODE(status.st_mode), path.read_bytes())
            found[str(path.relative_to(root))] = entry
    return found


def store_bytes(store: CandidateStore) -> bytes:
    """Everything a store holds on disk."""
    return b"".join(path.read_bytes() for path in sorted(store.directory.rglob("*")) if path.is_file())
