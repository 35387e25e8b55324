"""The places that belong to hidden tests, and what collides with them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from securebench._paths import canonical_key
from securebench.candidates.change_decision import ChangedPath
from securebench.candidates.change_rules import Key
from securebench.candidates.tree import Delta, EntryKind

_MAX_STEPS = 40


@dataclass(frozen=True)
class Protected:
    """Protected paths by canonical key, every directory above one, and the links a candidate made."""

    paths: Mapping[Key, str]
    above: frozenset[Key]
    links: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[str]) -> Protected:
        """Raises ValueError for an empty path."""
        by_key = {canonical_key(path): path.strip("/") for path in paths}
        if () in by_key:
            raise ValueError("a protected path is empty")
        return cls(by_key, frozenset(key[:depth] for key in by_key for depth in range(1, len(key))))

    def with_links(self, delta: Delta) -> Protected:
        entries = (*delta.added, *(change.after for change in delta.changed))
        return Protected(self.paths, self.above, {e.path: e.target for e in entries if e.target is not None})

    def covers(self, key: Key) -> bool:
        return self._owner(key) is not None

    def refusal(self, change: ChangedPath, key: Key) -> str | None:
        """Why a change must not be, or None."""
        if change.after is None or not self.paths:
            return None
        if key in self.above and change.kind_after is not EntryKind.DIRECTORY:
            return "takes the place of a directory that holds a protected path"
        owner = self._owner(key)
        if owner is not None:
            if "/".join(change.path.split("/")[: owner.count("/") + 1]) != owner:
                return f"collides with the protected path {owner}"
            if change.path == owner and self._replaces(change):
                return f"replaces a protected path by a {change.kind_after}"
        elif change.kind_after is EntryKind.LINK and self._leads_to_protected(change.path):
            return "is a link that leads to a protected path"
        return None

    def _owner(self, key: Key) -> str | None:
        """The protected path at or above a key, as it was given."""
        for depth in range(1, len(key) + 1):
            if (path := self.paths.get(key[:depth])) is not None:
                return path
        return None

    def _replaces(self, change: ChangedPath) -> bool:
        other_kind = change.kind_before not in (None, change.kind_after)
        return other_kind or change.kind_after is EntryKind.LINK

    def _leads_to_protected(self, path: str) -> bool:
        """Follows the text of the candidate's own links; the links of the pristine tree are the pack's."""
        place = path.split("/")
        for _ in range(_MAX_STEPS):
            depth = next((d for d in range(1, len(place) + 1) if "/".join(place[:d]) in self.links), None)
            if depth is None:
                return self._owner(canonical_key("/".join(place))) is not None
            steps = place[: depth - 1] + self.links["/".join(place[:depth])].split("/") + place[depth:]
            place = []
            for step in steps:
                if step == "..":
                    place = place[:-1]
                elif step not in {"", "."}:
                    place.append(step)
        return False  # a circle leads nowhere
