"""The places that belong to hidden tests, and what collides with them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from securebench.candidates.change_decision import ChangedPath
from securebench.candidates.change_rules import Key, is_loaded_instead, rule_key
from securebench.candidates.tree import Delta, EntryKind

_MAX_STEPS = 40
_MAX_PARTS = 4096  # looked at for one link; no honest one comes near
_MAX_PARTS_OF_ALL = 1_000_000  # for all links of a delta, so that many of them cannot keep everybody waiting


@dataclass(frozen=True)
class Protected:
    """Protected paths by canonical key, every directory above one, and the links a candidate made."""

    paths: Mapping[Key, str]
    above: frozenset[Key]
    modules: Mapping[Key, tuple[str, ...]]  # the names of protected Python files by directory
    links: Mapping[str, str] = field(default_factory=dict)
    looked_at: Counter[str] = field(default_factory=Counter)  # parts of paths, for all links together

    @classmethod
    def of(cls, paths: Iterable[str]) -> Protected:
        """Raises ValueError for an empty path."""
        by_key = {rule_key(path): path.strip("/") for path in paths}
        if () in by_key:
            raise ValueError("a protected path is empty")
        modules: dict[Key, tuple[str, ...]] = {}
        for *folder, name in by_key:
            if name.endswith(".py"):
                modules[tuple(folder)] = (*modules.get(tuple(folder), ()), name)
        return cls(by_key, frozenset(key[:depth] for key in by_key for depth in range(1, len(key))), modules)

    def with_links(self, delta: Delta) -> Protected:
        entries = (*delta.added, *(change.after for change in delta.changed))
        return replace(self, links={e.path: e.target for e in entries if e.target is not None}, looked_at=Counter())

    def covers(self, key: Key) -> bool:
        return self._owner(key) is not None

    def is_shadowed_by(self, key: Key) -> bool:
        """Whether Python would load this, or a package it belongs to, instead of a protected file."""
        return any(
            is_loaded_instead(key[depth:], name)
            for depth in range(len(key))
            for name in self.modules.get(key[:depth], ())
        )

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
        elif change.kind_after is EntryKind.LINK:
            return self._where_link_leads(change.path)
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

    def _where_link_leads(self, path: str) -> str | None:
        """Why a link must not be, or None. Follows the text of the candidate's own links; the links of the pristine
        tree are the pack's."""
        place, looked_at = path.split("/"), 0
        for _ in range(_MAX_STEPS):
            looked_at += len(place)
            self.looked_at["parts"] += len(place)
            if looked_at > _MAX_PARTS or self.looked_at["parts"] > _MAX_PARTS_OF_ALL:
                return "is a link that leads through too many others"
            link = next((above for above in accumulate(place, "{}/{}".format) if above in self.links), None)
            if link is None:
                owner = self._owner(rule_key("/".join(place)))
                return None if owner is None else "is a link that leads to a protected path"
            depth = link.count("/") + 1
            steps = place[: depth - 1] + self.links[link].split("/") + place[depth:]
            place = []
            for step in steps:
                if step == "..":
                    place = place[:-1]
                elif step not in {"", "."}:
                    place.append(step)
        return None  # a circle leads nowhere
