"""A git bundle as a source of one commit's files.

Bundles come with a pack: their bytes are pinned by the pack's digest but made by a stranger. Only the tree of the
commit asked for is taken; refs, tags, notes, messages and every other object are not."""

from __future__ import annotations

import mmap
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from securebench.workspaces._git.objects import GITLINK, LINK, TREE, commit_tree_id, decode_tree
from securebench.workspaces._git.pack_reader import PackLimits, PackReader
from securebench.workspaces._git.pack_writer import PackWriter

SIGNATURES = (b"# v2 git bundle\n", b"# v3 git bundle\n")
_HEADER = 1 << 20
_DEPTH = 64
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One thing of the commit's tree. `path` is as git stores it; its parts were not judged."""

    path: bytes
    data: bytes
    is_link: bool = False
    is_directory: bool = False  # where a submodule would be
    executable: bool = False


def is_bundle(path: Path) -> bool:
    """Whether a file of ours begins like a bundle."""
    with path.open("rb") as file:
        return file.read(len(SIGNATURES[0])) in SIGNATURES


class Bundle:
    """An opened bundle. Methods raise ValueError, worded to follow the bundle's name."""

    def __init__(self, data: memoryview, limits: PackLimits) -> None:
        self._pack = PackReader(data[_pack_start(bytes(data[:_HEADER])) :], limits)

    def files(self, base_commit: str) -> Iterator[BundleFile]:
        """Everything in the tree of that commit, directories before what they hold."""
        commit = self._commit(base_commit)
        yield from self._tree(commit_tree_id(commit), b"", 0)

    def objects(self, base_commit: str) -> Iterator[tuple[bytes, bytes]]:
        """That commit and all objects of its tree, by kind and content; what is there twice comes twice."""
        commit = self._commit(base_commit)
        yield b"commit", commit
        yield from self._objects(commit_tree_id(commit), 0)

    def _objects(self, identity: bytes, depth: int) -> Iterator[tuple[bytes, bytes]]:
        if depth > _DEPTH:
            raise ValueError(f"nests directories more than {_DEPTH} deep")
        tree = self._pack.read(identity, b"tree")
        yield b"tree", tree
        for item in decode_tree(tree):
            if item.mode == TREE:
                yield from self._objects(item.id, depth + 1)
            elif item.mode != GITLINK:
                yield b"blob", self._pack.read(item.id, b"blob")

    def _commit(self, base_commit: str) -> bytes:
        if not _COMMIT.fullmatch(base_commit):
            raise ValueError(f"cannot be searched for base_commit {base_commit[:60]!r}; give the commit's id")
        found = self._pack.find(base_commit, b"commit")
        if len(found) != 1:
            how = "does not hold" if not found else "holds more than one"
            raise ValueError(f"{how} commit {base_commit}")
        return self._pack.read(found[0], b"commit")

    def _tree(self, identity: bytes, path: bytes, depth: int) -> Iterator[BundleFile]:
        if depth > _DEPTH:
            raise ValueError(f"nests directories more than {_DEPTH} deep")
        for item in decode_tree(self._pack.read(identity, b"tree")):
            below = path + b"/" + item.name if path else item.name
            if item.mode == TREE:
                yield from self._tree(item.id, below, depth + 1)
            elif item.mode == GITLINK:
                yield BundleFile(below, b"", is_directory=True)
            else:
                data = self._pack.read(item.id, b"blob")
                yield BundleFile(below, data, is_link=item.mode == LINK, executable=bool(item.mode & 0o100))


def open_bundle(path: Path, limits: PackLimits | None = None) -> Bundle:
    """A bundle in a file that nobody else can change. Raises ValueError when it is none."""
    with path.open("rb") as file:
        if not file.read(1):
            raise ValueError("is empty")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # goes when the bundle does
    return Bundle(memoryview(mapped), limits or PackLimits())


def one_commit_bundle(bundle: Bundle, base_commit: str) -> bytes:
    """A bundle of that commit alone: the same files under the same id, and nothing from before or after. The same
    bytes every time. Raises ValueError."""
    with tempfile.TemporaryFile() as file:
        writer, commit = PackWriter(file), b""
        for kind, data in bundle.objects(base_commit):
            identity = writer.add(kind, data)
            commit = commit or identity
        writer.finish()
        file.seek(0)
        return SIGNATURES[0] + b"%s refs/heads/main\n\n" % commit.hex().encode() + file.read()


def _pack_start(header: bytes) -> int:
    if not header.startswith(SIGNATURES):
        raise ValueError("is no git bundle")
    at = len(SIGNATURES[0])
    while True:
        end = header.find(b"\n", at)
        if end < 0:
            raise ValueError("has a header that does not end")
        line = header[at:end]
        at = end + 1
        if not line:
            return at
        if line.startswith(b"-"):
            raise ValueError("builds on commits it does not hold; make it without a lower bound")
        if line.startswith(b"@") and line != b"@object-format=sha1":
            raise ValueError(f"uses {line[:60].decode('ascii', 'replace')!r}, which is not supported")
