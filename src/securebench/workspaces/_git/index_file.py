"""Git's index as bytes. Pure."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from securebench.workspaces._git.objects import WHEN, TreeItem

_ENTRY = struct.Struct(">10I20sH")
_LONG = 0xFFF


@dataclass(frozen=True, slots=True)
class IndexItem:
    """A tracked path with the size its file has."""

    item: TreeItem
    size: int


def encode_index(items: Iterable[IndexItem]) -> bytes:
    """The index (version 2) of a work tree nobody has touched yet.

    Device, inode and owner are not known before the files are in the sandbox. Git then looks at the content once,
    finds it unchanged and fills them in."""
    entries = [_entry(indexed) for indexed in sorted(items, key=lambda indexed: indexed.item.name)]
    body = b"".join([struct.pack(">4sII", b"DIRC", 2, len(entries)), *entries])
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _entry(indexed: IndexItem) -> bytes:
    item = indexed.item
    fixed = _ENTRY.pack(
        *(0, 0, WHEN, 0),  # changed, modified: seconds and nanoseconds
        *(0, 0, item.mode, 0, 0, indexed.size & 0xFFFFFFFF),  # device, inode, mode, user, group, size
        item.id,
        min(len(item.name), _LONG),
    )
    entry = fixed + item.name
    return entry + b"\0" * (8 - len(entry) % 8)
