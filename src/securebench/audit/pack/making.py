"""Candidates made on the trusted side, from what a pack says or from what we made of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from securebench import _fs
from securebench._leftovers import staging_directory
from securebench.answers.python_join import completed
from securebench.audit.pack.scripts import Script, solve
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Delta, Tree, TreeEntry, delta_between
from securebench.errors import PackError
from securebench.families.base import CandidateKind
from securebench.families.registry import family
from securebench.resources import Component, PackFile, Resource
from securebench.sandboxes.base import Sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers._pack_text import read_pack_text
from securebench.verifiers.base import Verification
from securebench.verifiers.suites.overlays import laid_over
from securebench.verifiers.suites.repository_task import RepositoryTask, load_repository_task
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget

REFERENCES = ("reference_solution", "canonical_solution", "gold_patch", "reference_workspace", "reference_script")
NOTE = "note"
"""Of a candidate's metadata: what happened while it was made."""
Given = str | PackFile | Script | None
"""What a row has of a candidate: text, a file of the pack, a script that makes it, or nothing."""


@dataclass(frozen=True)
class Maker:
    """Makes candidates of a task. Raises PackError for what a pack has wrong, InfrastructureError."""

    task: SecureBenchTask
    sandbox: Sandbox
    store: CandidateStore

    async def of(self, given: Given) -> CandidateArtifact:
        """From what the row has; from nothing, the candidate of somebody who did nothing."""
        kind = family(self.task.task_type).candidate
        if kind is CandidateKind.WORKSPACE:
            return await self._whole(given)
        if isinstance(given, Script):
            raise PackError("reference_script is for workspaces")
        text = text_of(self.task, given)
        if kind is CandidateKind.PATCH:
            return CandidateArtifact(self.task.id, kind, patch=text, delta=None if text else Delta())
        return self.code(text)

    def code(self, text: str) -> CandidateArtifact:
        return CandidateArtifact(self.task.id, CandidateKind.CODE, text=text)

    async def _whole(self, given: Given) -> CandidateArtifact:
        if not isinstance(given, Script):
            return await self.workspace(self.overlay(given) if isinstance(given, PackFile) else ())
        solved = await solve(given, await self.base(), self.task.environment, self.sandbox, self.store)
        whole = self.store.save(solved.tree)
        return CandidateArtifact(self.task.id, CandidateKind.WORKSPACE, workspace=whole, metadata={NOTE: solved.note})

    async def workspace(self, overlay: Iterable[TreeEntry]) -> CandidateArtifact:
        """The workspace as agents get it, with these entries laid over it."""
        tree = laid_over(await self.base(), overlay)
        return CandidateArtifact(self.task.id, CandidateKind.WORKSPACE, workspace=self.store.save(tree))

    async def base(self) -> Tree:
        """The tree an agent starts with."""
        with staging_directory() as staging:
            (place := staging / "workspace").mkdir()
            view, kind = self.task.view_for(Component.WORKER), family(self.task.task_type).candidate
            request = WorkspaceRequest(self.task.id, kind, view, self.task.environment, with_git=False)
            return (await build_workspace(request, place, self.store, self.sandbox)).pristine

    async def repository(self) -> RepositoryTask:
        """A repository with and without the gold patch."""
        views = {component: self.task.view_for(component) for component in Component}
        empty = CandidateArtifact(self.task.id, CandidateKind.PATCH, delta=Delta())
        verification = Verification(
            task_id=self.task.id,
            candidate=empty,
            evaluator=views[Component.EVALUATOR],
            tests=views[Component.TEST_SANDBOX],
            worker=views[Component.WORKER],
            environment=self.task.environment,
            sandbox=self.sandbox,
            store=self.store,
        )
        return await load_repository_task(verification, self.sandbox, self.store)

    def patch(self, pristine: Tree, changed: Tree) -> CandidateArtifact:
        return CandidateArtifact(self.task.id, CandidateKind.PATCH, delta=delta_between(pristine, changed))

    def file(self, path: str, data: bytes) -> TreeEntry:
        return TreeEntry.file(path, self.store.put(data), len(data))

    async def laid_down(self, reference: str | PackFile | Script) -> tuple[TreeEntry, ...]:
        """What a reference adds to the workspace or changes in it."""
        if isinstance(reference, Script):
            base = await self.base()
            solved = await solve(reference, base, self.task.environment, self.sandbox, self.store)
            return tuple(entry for entry in solved.tree.entries if base.get(entry.path) != entry)
        return self.overlay(reference) if isinstance(reference, PackFile) else ()

    def overlay(self, file: PackFile) -> tuple[TreeEntry, ...]:
        """The entries of a directory of the pack."""
        with staging_directory() as staging:
            return _pack_tree(file, staging, self.store)


def references(task: SecureBenchTask) -> list[Resource]:
    return [r for r in task.resources.resources if r.name in REFERENCES and r.value is not None]


def given_in(resource: Resource) -> list[str | PackFile]:
    """What a field holds: texts, patches, or references to files, one or several."""
    value = resource.value
    files = {str(file.path): file for file in resource.files}
    found: list[str | PackFile] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            found.append(item)
        elif "patch" in item:
            found.append(item["patch"])
        else:
            found.append(files[str(PurePosixPath(item["path"]))])
    return found


def text_of(task: SecureBenchTask, given: str | PackFile | None) -> str:
    if given is None:
        return task.view_for(Component.WORKER).values().get("starter_code") or ""
    return given if isinstance(given, str) else read_pack_text(given, task.id)


def reference_of(task: SecureBenchTask, resource: Resource) -> str | PackFile | Script:
    """A reference as a candidate: a canonical solution may be only the rest of a function whose head is the prompt."""
    given = given_in(resource)[0]
    if resource.name == "reference_script" and isinstance(given, PackFile):
        return Script(given)
    if resource.name != "canonical_solution":
        return given
    text, public = text_of(task, given), task.view_for(Component.WORKER).values()
    return completed(text, public.get("starter_code"), public["prompt"], public.get("entry_point"))[0]


def _pack_tree(file: PackFile, staging: Path, store: CandidateStore) -> tuple[TreeEntry, ...]:
    (place := staging / "overlay").mkdir()
    with _fs.open_directory(place) as root:
        copy_pack_file(file, root, PurePosixPath("overlay"), WorkspaceBudget(MaterializationLimits()))
    if not (place / "overlay").is_dir():
        raise PackError("reference_workspace and mutants name directories, whose files are laid over the workspace")
    with _fs.open_directory(place / "overlay") as root:
        return read_tree(root, store).tree.entries
