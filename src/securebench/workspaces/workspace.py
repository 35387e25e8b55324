"""`Workspace`: what an agent starts with, and `take`: what it made of it, as a candidate.

The *pristine* tree is the workspace as the strict reader saw it before anyone could touch it. After everything in the
sandbox is dead the same reader reads what is there. A patch is the difference between the two; a workspace is the
whole. What the agent did with git does not matter: the bytes of its work tree do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.captured import LISTED, Budget, Captured
from securebench.candidates.reader import read_tree
from securebench.candidates.rendering import render
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import EntryKind, Tree, TreeEntry, delta_between
from securebench.families.base import CandidateKind
from securebench.workspaces.exclusion import PatchExclusion

OnProgress = Callable[[str, int, int], None]
"""Called now and then, from any thread, with what is being done, and the entries and bytes so far."""

CAPTURE = "capture"
MAX_PATCH_TEXT = 4 * 2**20  # of a rendering in a record; the delta is complete in any case


@dataclass(frozen=True)
class Workspace:
    """A workspace nobody has touched yet, as a directory of ours (`seed`) and as a tree in the store."""

    task_id: str
    kind: CandidateKind
    seed: Path
    size: int  # bytes it takes on disk, for the size of a scratch directory
    store: CandidateStore
    pristine: Tree
    exclusion: PatchExclusion | None = None  # for patches
    ours: tuple[TreeEntry, ...] = ()  # the framework's files and the directories that lead to them
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # for the record

    def take(self, root: int, budget: Budget | None = None, on_progress: OnProgress | None = None) -> CandidateArtifact:
        """The candidate in the directory `root`, which nobody may be writing any more.

        Raises CandidateError when it exceeds its budget, StoreError, InfrastructureError."""
        captured = read_tree(
            root,
            self.store,
            budget or Budget(),
            self.exclusion,
            None if on_progress is None else lambda files, size: on_progress(CAPTURE, files, size),
        )
        return self._artifact(captured)

    def untouched(self) -> CandidateArtifact:
        """The candidate of an agent that did nothing."""
        return self._artifact(Captured(self.pristine))

    def _artifact(self, captured: Captured) -> CandidateArtifact:
        if self.exclusion is not None:
            captured = self.exclusion.settle(captured)
        captured = Captured(without(captured.tree, self.ours), captured.left_out)
        return self._whole(captured) if self.exclusion is None else self._patch(captured)

    def _patch(self, captured: Captured) -> CandidateArtifact:
        delta = delta_between(self.pristine, captured.tree)
        rendered = render(delta, self.store.read, MAX_PATCH_TEXT)
        found = {
            "delta": delta.digest,
            "changed_paths": len(delta.paths),
            "new_bytes": delta.size,
            "not_rendered": list(rendered.omitted[:LISTED]),
        }
        metadata = self._metadata(captured, found)
        return CandidateArtifact(self.task_id, self.kind, patch=rendered.text, delta=delta, metadata=metadata)

    def _whole(self, captured: Captured) -> CandidateArtifact:
        return CandidateArtifact(
            self.task_id,
            self.kind,
            workspace=captured.tree.digest,
            metadata=self._metadata(captured, {}),
            workspace_bytes=captured.tree.total_bytes,
        )

    def _metadata(self, captured: Captured, found: Mapping[str, Any]) -> dict[str, Any]:
        """What the record says. Both trees are in the store under their digests, so a verdict can be repeated."""
        pristine = self.store.save(self.pristine)
        self.store.save(captured.tree)
        capture = {**captured.as_record(), "pristine": pristine, **found}
        return {"source": "workspace", **self.facts, "capture": capture}


def without(tree: Tree, ours: tuple[TreeEntry, ...]) -> Tree:
    """The tree without those of our files that nobody changed, and without directories that held nothing else."""
    gone = {entry.path for entry in ours if tree.get(entry.path) == entry and entry.kind is not EntryKind.DIRECTORY}
    made = [entry.path for entry in ours if entry.kind is EntryKind.DIRECTORY]
    for directory in sorted(made, key=len, reverse=True):
        inside = (e.path for e in tree.entries if e.path.startswith(directory + "/") and e.path not in gone)
        if next(inside, None) is None:
            gone.add(directory)
    return Tree.of(entry for entry in tree.entries if entry.path not in gone)
