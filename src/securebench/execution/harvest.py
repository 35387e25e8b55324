"""What a dead program left: declared outputs, how much it wrote, and what the guard reported. Nothing here is trusted.

Outputs are read through the strict reader: regular files beneath the root, no link on the way, within a budget.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from securebench._fs import UnsafeEntry, open_beneath, read_bounded, walk
from securebench._json import JsonError, loads
from securebench._paths import relative_path
from securebench.execution.request import Blocked
from securebench.sandboxes.base import MIB

MAX_REPORT = 1 * MIB
MAX_BLOCKED = 1000
_MAX_ENTRIES = 20_000
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class Harvest:
    """Outputs taken, and for each one not taken the reason."""

    outputs: Mapping[str, bytes]
    refused: Mapping[str, str]


def take_outputs(root: int, paths: tuple[str, ...], limit: int) -> Harvest:
    """The declared outputs beneath the descriptor `root`, at most `limit` bytes in all."""
    taken: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    for path in paths:
        try:
            with open_beneath(root, relative_path(path)) as descriptor:
                taken[path] = read_bounded(descriptor, limit, path)
        except UnsafeEntry as error:
            refused[path] = str(error)
        else:
            limit -= len(taken[path])
    return Harvest(taken, refused)


def bytes_left(root: int, inputs: int, *, own_file_system: bool) -> int | None:
    """Bytes in files beneath `root` beyond the `inputs` that were there; None when the tree does not let itself be
    counted. Where the root is a file system of its own, that is asked then, in whole pages."""
    try:
        total = sum(
            _size(entry.descriptor, entry.size)
            for entry in walk(root, PurePosixPath(), _MAX_ENTRIES)
            if not entry.is_dir
        )
    except UnsafeEntry:
        if not own_file_system:
            return None
        status = os.fstatvfs(root)
        total = (status.f_blocks - status.f_bfree) * status.f_frsize
    return max(0, total - inputs)


def _size(descriptor: int, size: int) -> int:
    """Not the holes of a sparse file."""
    return min(size, os.fstat(descriptor).st_blocks * 512)


@dataclass(frozen=True, slots=True)
class Report:
    """`installed` is None when the guard did not get as far as its first line."""

    installed: tuple[str, ...] | None
    blocked: tuple[Blocked, ...]


def read_report(data: bytes, root: str) -> Report:
    """The guard's lines. The first was written before the program began; all others may be forged or torn."""
    first, _, rest = data.partition(b"\n")
    opening = _object(first)
    names = opening.get("installed")
    if not isinstance(names, list):
        return Report(None, ())
    installed = tuple(str(name)[:_MAX_TEXT] for name in names)
    found = (_blocked(_object(line), root) for line in rest.split(b"\n")[:MAX_BLOCKED])
    return Report(installed, tuple(blocked for blocked in found if blocked is not None))


def _object(line: bytes) -> Mapping[str, object]:
    try:
        value = loads(line)
    except JsonError:
        return {}
    return value if isinstance(value, dict) else {}


def _blocked(fields: Mapping[str, object], root: str) -> Blocked | None:
    operation = fields.get("operation")
    if not isinstance(operation, str):
        return None
    line = fields.get("line")
    texts = {name: str(fields.get(name) or "")[:_MAX_TEXT] for name in ("item", "message", "file")}
    texts["file"] = texts["file"].removeprefix(f"{root}/")
    number = line if isinstance(line, int) and not isinstance(line, bool) and 0 < line < 1 << 31 else 0
    return Blocked(operation=operation[:_MAX_TEXT], line=number, **texts)
