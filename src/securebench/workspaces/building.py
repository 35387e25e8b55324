"""`build_workspace`: the directory an agent starts with, made by adding to an empty one.

First our own files and the public assets, then around them the files of the repository or of the image's working
directory: what was laid down first wins. A `repo_patch` task has its repository at the working directory itself, with
one commit of everything in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import anyio.to_thread

from securebench import _fs
from securebench.candidates.captured import Captured
from securebench.candidates.entry_names import shown
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import EntryKind, Tree, TreeEntry
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, InfrastructureError, PackError
from securebench.families.base import CandidateKind
from securebench.resources import PackFile, Resource, ResourceView
from securebench.sandboxes.base import Sandbox
from securebench.workspaces._git.ignore import IgnoreRules
from securebench.workspaces._git.repository import make_repository
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.exclusion import PatchExclusion, PristineExclusion
from securebench.workspaces.filling import Filling, take_all
from securebench.workspaces.image_workdir import open_image_workdir
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget
from securebench.workspaces.materialization import MaterializationPlan, VisibilityAwareMaterializer
from securebench.workspaces.path_policy import TASK_FILE
from securebench.workspaces.repositories import (
    BASE_COMMIT,
    GIT_DIRECTORY,
    check_no_history,
    not_source,
    payload_at_root,
    repository_asset,
    unpack_bundle,
)
from securebench.workspaces.workspace import OnProgress, Workspace, without

PRISTINE = "pristine"
_BLOCK = 4096
_MAX_IGNORE_FILE = 1024 * 1024
_LISTED = 100


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """What decides a workspace: a component's view of a task, and nothing beyond it. Without a payload there is no
    task file."""

    task_id: str
    kind: CandidateKind
    view: ResourceView
    environment: TaskEnvironment
    payload: Mapping[str, Any] | None = None
    task_file: PurePosixPath = TASK_FILE
    with_git: bool = True  # whether a repository gets its `.git`; only agents need it
    limits: MaterializationLimits = MaterializationLimits()  # noqa: RUF009 — frozen


async def build_workspace(
    request: WorkspaceRequest,
    staging: Path,
    store: CandidateStore,
    sandbox: Sandbox | None = None,
    on_progress: OnProgress | None = None,
) -> Workspace:
    """Build it beneath `staging`, an empty private directory. `sandbox` is asked for images that only it has.

    Raises PackError and ConfigError for what cannot be built, IntegrityError for assets that changed,
    SandboxUnavailable without the image, StoreError, InfrastructureError."""
    work = _Building(request, staging, store, on_progress)
    try:
        await anyio.to_thread.run_sync(work.lay_down)
        if work.from_image and request.environment.image is not None:
            (staging / "image").mkdir()
            image, workdir = request.environment.image, request.environment.workdir
            async with open_image_workdir(image, workdir, sandbox, staging / "image", request.limits) as source:
                await anyio.to_thread.run_sync(partial(work.fill, source, keep_times=True))
        return await anyio.to_thread.run_sync(work.finish)
    except OSError as error:
        raise InfrastructureError(f"the workspace cannot be written: {error.strerror}") from error


class _Building:
    """One workspace under construction."""

    def __init__(
        self, request: WorkspaceRequest, staging: Path, store: CandidateStore, on_progress: OnProgress | None
    ) -> None:
        self._request, self._staging, self._store, self._on_progress = request, staging, store, on_progress
        self._seed = staging / "seed"
        self._budget = WorkspaceBudget(request.limits)
        self._is_repository = request.kind is CandidateKind.PATCH
        self._asset = repository_asset(request.view, request.environment.image) if self._is_repository else None
        if request.environment.materialize_workdir_from_image and request.environment.image is None:
            raise PackError("environment.materialize_workdir_from_image needs environment.image")
        self.from_image = request.environment.materialize_workdir_from_image and self._asset is None
        self.from_image |= self._is_repository and self._asset is None
        self._left_out: list[tuple[bytes, str]] = []
        self._materializer = VisibilityAwareMaterializer(request.view.component, request.limits)
        self._plan = self._planned()
        self._ours = frozenset(str(value.place) for value in self._plan.values)

    def _planned(self) -> MaterializationPlan:
        view, payload, asset = self._request.view, self._request.payload, self._asset
        if asset is not None:
            view = replace(view, resources=tuple(_without_file(resource, asset) for resource in view.resources))
            payload = None if payload is None else payload_at_root(dict(payload), asset)
        return self._materializer.plan(view, None if payload is None else dict(payload), self._request.task_file)

    def lay_down(self) -> None:
        """Our own files, the public assets, and a repository that comes with the pack."""
        self._seed.mkdir()
        self._seed.chmod(0o755)
        self._materializer.materialize(self._plan, self._seed, self._budget)
        if self._asset is None:
            return
        copied, again = self._staging / "repository", WorkspaceBudget(self._request.limits)
        try:
            with _fs.open_directory(self._staging) as staging:
                copy_pack_file(replace(self._asset, read_only=False), staging, PurePosixPath(copied.name), again)
        except _fs.UnsafeEntry as error:
            raise PackError(f"asset {error}") from error
        is_bundle = not copied.is_dir()
        if is_bundle:
            (tree := self._staging / "unpacked").mkdir()
            base = str(self._request.view.values().get(BASE_COMMIT))
            unpack_bundle(copied, self._asset.path, base, tree, again)
        else:
            check_no_history(tree := copied, self._asset.path)
        with _fs.open_directory(tree) as source:
            self.fill(source, move=True, tracked_by_git=is_bundle)

    def fill(self, source: int, keep_times: bool = False, move: bool = False, tracked_by_git: bool = False) -> None:
        """Take over the files of a directory wherever nothing is yet."""
        with _fs.open_directory(self._seed) as root:
            filling = Filling(
                root,
                self._budget,
                ours=frozenset(map(os.fsencode, self._ours)),
                unwanted=not_source if self._is_repository and not tracked_by_git else take_all,
                keep_times=keep_times,
                move=move,
            )
            filling.copy(source)
            self._left_out += filling.left_out

    def finish(self) -> Workspace:
        """Make it a repository where it is one, and read it while it is pristine."""
        request = self._request
        facts: dict[str, Any] = {}
        rules = IgnoreRules({})
        if self._is_repository:
            rules = _ignore_rules(self._seed)
        if self._is_repository and request.with_git:
            ours = {os.fsencode(path) for path in self._ours}
            base = make_repository(self._seed, partial(self._tracked, rules, ours), tuple(sorted(ours)))
            facts = {"base_commit": base.commit, "base_tree": base.tree}
        _fs.settle_times(self._seed)
        blank = Workspace(request.task_id, request.kind, self._seed, _disk_usage(self._seed), self._store, Tree())
        if request.kind not in (CandidateKind.PATCH, CandidateKind.WORKSPACE):
            return blank
        captured = self._pristine()
        left_out = [
            {"path": item.path, "reason": item.reason} for item in captured.left_out if item.path not in self._ours
        ]
        left_out += [{"path": shown(os.fsdecode(path)), "reason": reason} for path, reason in self._left_out]
        facts["left_out_at_start"] = [item for item in left_out if item["path"] != GIT_DIRECTORY][:_LISTED]
        own = self._own_entries(captured.tree)
        tree = without(captured.tree, own)
        tracked = frozenset(entry.path for entry in tree.entries)
        exclusion = PatchExclusion(tracked, self._ours, rules) if self._is_repository else None
        return replace(blank, pristine=tree, ours=own, exclusion=exclusion, facts=facts)

    def _tracked(self, rules: IgnoreRules, ours: set[bytes], path: bytes, is_dir: bool) -> bool:
        """All that came with the pack is tracked; of an image's directory, what its rules do not ignore."""
        return path not in ours and not (self.from_image and rules.ignored(path, is_dir))

    def _pristine(self) -> Captured:
        exclude = PristineExclusion(self._ours) if self._is_repository else None
        report = self._on_progress
        try:
            with _fs.open_directory(self._seed) as root:
                return read_tree(
                    root,
                    self._store,
                    exclude=exclude,
                    progress=None if report is None else lambda files, size: report(PRISTINE, files, size),
                )
        except CandidateError as error:
            raise PackError(f"the workspace cannot be captured, even untouched: {error}") from error

    def _own_entries(self, tree: Tree) -> tuple[TreeEntry, ...]:
        """Our files and the directories that lead to them."""
        places = {PurePosixPath(path) for path in self._ours}
        leading = {str(parent) for place in places for parent in place.parents if parent.parts}
        return tuple(
            entry
            for entry in tree.entries
            if entry.path in self._ours or (entry.path in leading and entry.kind is EntryKind.DIRECTORY)
        )


def _without_file(resource: Resource, file: PackFile) -> Resource:
    return replace(resource, files=tuple(other for other in resource.files if other != file))


def _ignore_rules(seed: Path) -> IgnoreRules:
    """The ignore files of a work tree of ours that nobody has touched."""
    files: dict[tuple[bytes, ...], bytes] = {}
    for parent, _, names in os.walk(seed):
        path = Path(parent, ".gitignore")
        if ".gitignore" in names and stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size <= _MAX_IGNORE_FILE:
            files[tuple(map(os.fsencode, Path(parent).relative_to(seed).parts))] = path.read_bytes()
    return IgnoreRules(files)


def _disk_usage(seed: Path) -> int:
    """What a copy takes where every file has whole blocks."""
    total = 0
    for parent, folders, names in os.walk(seed):
        total += _BLOCK * (1 + len(folders))
        total += sum(-(-Path(parent, name).lstat().st_size // _BLOCK) * _BLOCK + _BLOCK for name in names)
    return total
