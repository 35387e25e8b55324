"""Git objects as bytes: their ids, trees and the one commit we make. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

FILE, EXECUTABLE, LINK, TREE, GITLINK = 0o100644, 0o100755, 0o120000, 0o040000, 0o160000
ID_BYTES = 20
WHEN = 1_000_000_000  # the one fixed time for everything an agent can see


@dataclass(frozen=True, slots=True)
class TreeItem:
    """One line of a tree object, or of the flat list a tree is made from (then `name` is a path)."""

    name: bytes
    mode: int
    id: bytes


def hasher(kind: bytes, size: int) -> hashlib._Hash:
    """A hash that has seen the header of an object; the content is still to come."""
    return hashlib.sha1(b"%s %d\0" % (kind, size), usedforsecurity=False)


def object_id(kind: bytes, data: bytes) -> bytes:
    sha = hasher(kind, len(data))
    sha.update(data)
    return sha.digest()


def encode_tree(items: Iterable[TreeItem]) -> bytes:
    """A tree object. Git sorts a directory as if its name ended with `/`."""
    ordered = sorted(items, key=lambda item: item.name + b"/" if item.mode == TREE else item.name)
    return b"".join(b"%o %s\0" % (item.mode, item.name) + item.id for item in ordered)


def decode_tree(data: bytes) -> list[TreeItem]:
    """The items of a tree object. Raises ValueError when it is not one."""
    items, at = [], 0
    while at < len(data):
        space = data.find(b" ", at, at + 8)
        end = data.find(b"\0", space)
        if space < 0 or end < 0 or len(data) < end + 1 + ID_BYTES:
            raise ValueError("a damaged tree object")
        items.append(TreeItem(data[space + 1 : end], int(data[at:space], 8), data[end + 1 : end + 1 + ID_BYTES]))
        at = end + 1 + ID_BYTES
    if len({item.name for item in items}) != len(items):
        raise ValueError("a tree object with the same name twice")
    return items


def commit_tree_id(data: bytes) -> bytes:
    """The tree a commit names. Raises ValueError when it is no commit."""
    first = data.partition(b"\n")[0]
    if not first.startswith(b"tree ") or len(first) != 45:
        raise ValueError("a damaged commit object")
    return bytes.fromhex(first[5:].decode("ascii", "replace"))


def base_commit(tree: bytes) -> bytes:
    """A commit without parents whose author, time and message say nothing."""
    who = b"SecureBench <securebench@localhost> %d +0000" % WHEN
    return b"tree %s\nauthor %s\ncommitter %s\n\nBase commit\n" % (tree.hex().encode(), who, who)
