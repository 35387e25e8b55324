"""One changed path, and what was decided about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from securebench.candidates.tree import Delta, EntryKind, TreeEntry


class Outcome(StrEnum):
    """`allowed` counts, `stripped` does not, `refused` fails the candidate."""

    ALLOWED = "allowed"
    STRIPPED = "stripped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """What was and what is at one path; not both None."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None

    @property
    def how(self) -> str:
        if self.before is None:
            return "added"
        return "deleted" if self.after is None else "changed"

    @property
    def kind_before(self) -> EntryKind | None:
        return self.before and self.before.kind

    @property
    def kind_after(self) -> EntryKind | None:
        return self.after and self.after.kind


@dataclass(frozen=True, slots=True)
class Decision:
    """One path: how it changed, what was decided, and why, as the end of a sentence that begins with the path."""

    path: str
    how: str
    outcome: Outcome
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "how": self.how, "reason": self.reason}


def changed_paths(delta: Delta) -> Iterator[ChangedPath]:
    """Every path of a delta, once."""
    for entry in delta.added:
        yield ChangedPath(entry.path, None, entry)
    for change in delta.changed:
        yield ChangedPath(change.path, change.before, change.after)
    for entry in delta.deleted:
        yield ChangedPath(entry.path, entry, None)
