"""Makes a work tree of ours a git repository with exactly one commit.

The object store holds the blobs and trees of that commit and nothing else: no history, remote, tag, reflog, hook or
unreachable object. It is written here from the bytes of the work tree; no git runs, and nothing of a repository
somebody else made is taken over."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from securebench._fs import CHUNK, EPOCH_NS
from securebench.workspaces._git.index_file import IndexItem, encode_index
from securebench.workspaces._git.objects import (
    EXECUTABLE,
    FILE,
    LINK,
    TREE,
    TreeItem,
    base_commit,
    encode_tree,
    hasher,
)
from securebench.workspaces._git.pack_writer import PackWriter

GIT = ".git"
BRANCH = "main"
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
# Bytes are what counts: no line ending, keyword or filter of the repository's own attributes changes what git sees.
_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding\n"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SPECIAL = frozenset(b"\\*?[!# ")


@dataclass(frozen=True, slots=True)
class BaseCommit:
    """What the repository's one commit is called, and its tree."""

    commit: str
    tree: str


def make_repository(
    directory: Path, tracked: Callable[[bytes, bool], bool], excluded: tuple[bytes, ...] = ()
) -> BaseCommit:
    """Add `.git` to a directory that no one else can write. `tracked(path, is_dir)` says what the commit holds;
    `excluded` are files of ours that `git status` shall not show. Raises OSError."""
    git = directory / GIT
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (git / name).mkdir(parents=True)
    with (git / "objects" / "pack" / "new").open("x+b") as file:
        pack = PackWriter(file)
        scan = _Scan(pack, tracked)
        descriptor = os.open(directory, _DIRECTORY)
        try:
            tree = pack.add(b"tree", encode_tree(scan.directory(descriptor, b"")))
        finally:
            os.close(descriptor)
        commit = pack.add(b"commit", base_commit(tree))
        checksum = pack.finish()
    packs = git / "objects" / "pack"
    (packs / "new").rename(packs / f"pack-{checksum.hex()}.pack")
    (packs / f"pack-{checksum.hex()}.idx").write_bytes(pack.index(checksum))
    (git / "index").write_bytes(encode_index(scan.index))
    (git / "config").write_text(_CONFIG)
    (git / "HEAD").write_text(f"ref: refs/heads/{BRANCH}\n")
    (git / "refs" / "heads" / BRANCH).write_text(f"{commit.hex()}\n")
    (git / "info" / "exclude").write_bytes(b"".join(b"/" + _escaped(path) + b"\n" for path in excluded))
    (git / "info" / "attributes").write_text(_ATTRIBUTES)
    _settle(git)
    return BaseCommit(commit.hex(), tree.hex())


class _Scan:
    """Reads a work tree once, adding its blobs and trees to the pack."""

    def __init__(self, pack: PackWriter, tracked: Callable[[bytes, bool], bool]) -> None:
        self._pack = pack
        self._tracked = tracked
        self.index: list[IndexItem] = []

    def directory(self, directory: int, path: bytes) -> list[TreeItem]:
        items = []
        for name in sorted(map(os.fsencode, os.listdir(directory))):
            below = path + b"/" + name if path else name
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if below == GIT.encode() or not self._tracked(below, stat.S_ISDIR(status.st_mode)):
                continue
            if stat.S_ISDIR(status.st_mode):
                with _opened(name, _DIRECTORY, directory) as child:
                    inner = self.directory(child, below)
                if inner:  # git knows no empty directories
                    items.append(TreeItem(name, TREE, self._pack.add(b"tree", encode_tree(inner))))
                continue
            mode, identity, size = self._blob(directory, name, status)
            items.append(TreeItem(name, mode, identity))
            self.index.append(IndexItem(TreeItem(below, mode, identity), size))
        return items

    def _blob(self, directory: int, name: bytes, status: os.stat_result) -> tuple[int, bytes, int]:
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=directory)
            return LINK, self._pack.add(b"blob", target), len(target)
        mode = EXECUTABLE if status.st_mode & 0o111 else FILE
        with _opened(name, _FILE, directory) as file:
            if status.st_size <= CHUNK:
                data = os.read(file, CHUNK + 1)
                return mode, self._pack.add(b"blob", data), len(data)
            sha = hasher(b"blob", status.st_size)
            for chunk in _chunks(file):
                sha.update(chunk)
            if sha.digest() not in self._pack:
                os.lseek(file, 0, os.SEEK_SET)
                self._pack.add_stream(b"blob", sha.digest(), status.st_size, _chunks(file))
            return mode, sha.digest(), status.st_size


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, CHUNK):
        yield chunk


def _escaped(path: bytes) -> bytes:
    return b"".join(b"\\" + bytes([char]) if char in _SPECIAL else bytes([char]) for char in path)


def _settle(git: Path) -> None:
    """Plain modes whatever the umask, and the one fixed time."""
    for parent, _, files in os.walk(git, topdown=False):
        for name in files:
            path = Path(parent, name)
            path.chmod(0o444 if name.startswith("pack-") else 0o644)
            os.utime(path, ns=(EPOCH_NS, EPOCH_NS))
        Path(parent).chmod(0o755)
        os.utime(parent, ns=(EPOCH_NS, EPOCH_NS))


@contextmanager
def _opened(name: bytes, flags: int, parent: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
