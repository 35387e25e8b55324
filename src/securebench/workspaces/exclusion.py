"""What of a captured work tree is no part of a patch. Decided by the pristine tree; nothing the agent wrote has a say.

- a path of the pristine tree counts, whatever rules match it;
- git directories, the framework's own files and caches of tools do not;
- nor does what the `.gitignore` files of the pristine tree ignore."""

from __future__ import annotations

from dataclasses import dataclass

from securebench.candidates.captured import Captured, LeftOut
from securebench.candidates.entry_names import shown
from securebench.candidates.tree import EntryKind, Tree
from securebench.workspaces._git.ignore import IgnoreRules
from securebench.workspaces.repositories import GIT_DIRECTORY, TOOL_CACHES, is_git_name, is_tool_cache

GIT, OURS, CACHE, IGNORED = "git directory", "file of the framework", "cache of a tool", "pack's ignore rules"


@dataclass(frozen=True, slots=True)
class PristineExclusion:
    """What is left out when the pristine tree itself is read: the repository's own directory and our files."""

    ours: frozenset[str]

    def match(self, path: str) -> str | None:
        """Why this path is left out, or None."""
        if path in self.ours:
            return OURS
        return GIT if is_git_name(path) else None


@dataclass(frozen=True)
class PatchExclusion:
    """The rules for one pristine tree, in the form the strict reader asks for."""

    tracked: frozenset[str]
    ours: frozenset[str]
    rules: IgnoreRules

    def match(self, path: str) -> str | None:
        """Why this path is left out, or None. A directory is only known as one once something in it is asked for."""
        if path in self.tracked:
            return None
        if path in self.ours:
            return OURS
        parts = path.split("/")
        if is_git_name(parts[-1]):
            return GIT
        if parts[-1] in TOOL_CACHES or is_tool_cache(parts[-1], is_dir=False):
            return CACHE
        return IGNORED if self.rules.ignored(path.encode(), is_dir=False) else None

    def settle(self, captured: Captured) -> Captured:
        """Drop new directories that are ignored as such, and list each once instead of what it holds. What every
        capture leaves out, the repository's own directory and our files, is not listed at all."""
        dropped = {
            entry.path
            for entry in captured.tree.entries
            if entry.kind is EntryKind.DIRECTORY
            and entry.path not in self.tracked
            and self.rules.ignored(entry.path.encode(), is_dir=True)
        }
        entries = [e for e in captured.tree.entries if e.path not in dropped and not _beneath(e.path, dropped)]
        names = {shown(path) for path in dropped}
        silent = {GIT_DIRECTORY, *map(shown, self.ours)}
        listed = [item for item in captured.left_out if item.path not in silent and not _beneath(item.path, names)]
        listed += [LeftOut(path, f"excluded by {IGNORED}") for path in names if not _beneath(path, names)]
        return Captured(Tree.of(entries), tuple(sorted(listed, key=lambda item: item.path)))


def _beneath(path: str, directories: set[str]) -> bool:
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in directories:
            return True
    return False
