"""What a capture may take and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from securebench.candidates.tree import Tree

GIB = 2**30
LISTED = 1000
SHOWN = 200  # characters of a path in a record


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one capture; exceeding one is the candidate's failure."""

    files: int = 200_000  # entries of any kind
    depth: int = 64
    name: int = 255
    path: int = 2048  # as in every backend; a tree is also laid out again, beneath a directory of ours
    file_bytes: int = 2 * GIB
    total_bytes: int = 8 * GIB
    all_paths: int = 128 * 2**20  # bytes of all paths and link targets together: what a tree costs in memory


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One entry that was not captured, with what lies beneath it. `path` is printable."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Captured:
    """A tree whose contents are in the store, and what was left out of it."""

    tree: Tree
    left_out: tuple[LeftOut, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """For the record of an attempt: the digest, the counts, and the first of what was left out."""
        return {
            "tree": self.tree.digest,
            "files": len(self.tree.files),
            "bytes": self.tree.total_bytes,
            "left_out_count": len(self.left_out),
            "left_out": [{"path": _cut(item.path), "reason": item.reason} for item in self.left_out[:LISTED]],
        }


def _cut(path: str) -> str:
    """A record stays small, whatever names an agent gives to what is not captured."""
    return path if len(path) <= SHOWN else f"{path[:SHOWN]}…"
