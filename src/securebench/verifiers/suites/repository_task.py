"""All that the verifier of a repository knows about a task before it looks at a candidate."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from random import Random

from pydantic import TypeAdapter

from securebench import _fs
from securebench._leftovers import staging_directory
from securebench.candidates.captured import Captured
from securebench.candidates.patch_application import apply_patch
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Delta, EntryKind, Tree, delta_between
from securebench.errors import CandidateError, PackError
from securebench.families.base import CandidateKind
from securebench.families.repo_patch import CommandSuite, IdSuite, InlinePatch, Patch, RepoPatchEval
from securebench.resources import PackFile, ResourceView
from securebench.sandboxes.base import Sandbox
from securebench.verifiers._pack_text import read_pack_text
from securebench.verifiers._text_answers import typed
from securebench.verifiers.base import Verification
from securebench.verifiers.host_tools import host_sandbox
from securebench.verifiers.suites.ids import TestId, read_id
from securebench.verifiers.suites.overlays import laid_over, with_delta
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget

MAX_SOURCE = 4 * 2**20
_GOLD, _TESTS = "gold_patch", "tests"
_PATCH: TypeAdapter[Patch] = TypeAdapter(Patch)


@dataclass(frozen=True)
class RepositoryTask:
    """The pristine tree, what is laid over a candidate last, and the reference solution where there is one."""

    pristine: Tree
    setup: Delta
    hidden: Tree  # files of the pack that are written last
    test_patch: Delta
    gold: Tree | None  # the pristine tree with the gold patch
    suite: CommandSuite | IdSuite
    store: CandidateStore

    @property
    def protected(self) -> frozenset[str]:
        """The places a candidate cannot decide about: what is hidden, what the pack patches, and the tests themselves
        where they are in plain sight."""
        files = (entry.path for entry in self.hidden.entries if entry.kind is not EntryKind.DIRECTORY)
        return frozenset((*self.setup.paths, *self.test_patch.paths, *files, *self._named))

    @cached_property
    def _named(self) -> frozenset[str]:
        """The files that the suite names, those of its tests or arguments of its command, but for what the gold patch
        changes: tests may stand in the very file they test."""
        suite, ready = self.suite, self.ready(self.pristine)
        if isinstance(suite, IdSuite):
            texts = (*suite.fail_to_pass, *suite.pass_to_pass)
            names = {read_id(suite.source, text, "").file for text in texts}
        else:
            names = {argument for argument in suite.command if _is_inside(argument)}
        entries = (ready.get(self.place(name)) for name in names)
        found = {entry.path for entry in entries if entry is not None and entry.kind is not EntryKind.DIRECTORY}
        return frozenset(found.difference(() if self.gold is None else delta_between(self.pristine, self.gold).paths))

    def over(self, store: CandidateStore) -> RepositoryTask:
        """The same task over another store, which has all that this one's has."""
        task = replace(self, store=store)
        vars(task)["_named"] = self._named  # looked for once
        return task

    def ready(self, tree: Tree) -> Tree:
        """`tree` as the tests find it: set up, and the hidden tests restored last."""
        ready = with_delta(with_delta(tree, self.setup), self.test_patch)
        return laid_over(ready, self.hidden.entries)

    def text(self, tree: Tree, path: str) -> str | None:
        """A source file of a tree; None where it is not there, not text, or too large."""
        entry = tree.get(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            return None
        try:
            return self.store.read(entry.digest, MAX_SOURCE).decode("utf-8")
        except ValueError:
            return None

    def folder_on_path(self, tree: Tree, test_file: str) -> str | None:
        """The directory of a test file, as test ids name it, where pytest imports modules from it: it is no package,
        and not the root of the suite."""
        folder = str(PurePosixPath(test_file).parent)
        return None if folder == "." or tree.get(self.place(f"{folder}/__init__.py")) is not None else folder

    def place(self, test_file: str) -> str:
        """Where a file that test ids name lies in the tree."""
        return str(PurePosixPath(self.suite.workdir or ".") / test_file)


def _is_inside(argument: str) -> bool:
    path = PurePosixPath(argument)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def expected_tests(suite: IdSuite, task_id: str) -> tuple[tuple[TestId, ...], tuple[TestId, ...]]:
    """The fail-to-pass and the pass-to-pass tests. Raises PackError for an id that cannot be read."""
    fail_to_pass = tuple(read_id(suite.source, text, task_id) for text in suite.fail_to_pass)
    return fail_to_pass, tuple(read_id(suite.source, text, task_id) for text in suite.pass_to_pass)


def secret_random(seed: bytes, task_id: str) -> Random:
    """The same for every attempt at a task in a run, and unknown to all of them."""
    return Random(hashlib.sha256(seed + b"\0suite\0" + task_id.encode()).digest())  # noqa: S311 — seeded with a secret


async def load_repository_task(verification: Verification, sandbox: Sandbox, store: CandidateStore) -> RepositoryTask:
    """Build it from the pack. Raises PackError where a patch of the pack does not fit, InfrastructureError."""
    task_id = verification.task_id
    suite = typed(RepoPatchEval, verification.tests, task_id).tests
    with staging_directory() as staging:
        request = WorkspaceRequest(
            task_id, CandidateKind.PATCH, verification.worker, verification.environment, with_git=False
        )
        pristine = (await build_workspace(request, staging, store, sandbox)).pristine
    files = _files(verification.tests, _TESTS)

    async def patched(tree: Tree, patch: Patch | None, name: str, found: Mapping[str, PackFile]) -> Tree:
        text = _patch_text(patch, found, task_id)
        if text is None:
            return tree
        try:
            return (await apply_patch(text, tree, store, await host_sandbox(sandbox))).tree
        except CandidateError as error:
            raise PackError(f"task {task_id}: {name} {error}") from None

    set_up = await patched(pristine, suite.setup_patch, "tests.setup_patch", files)
    tested = await patched(set_up, suite.test_patch, "tests.test_patch", files)
    gold_patch = _gold(verification.evaluator)
    gold = await patched(pristine, gold_patch, _GOLD, _files(verification.evaluator, _GOLD)) if gold_patch else None
    return RepositoryTask(
        pristine=pristine,
        setup=delta_between(pristine, set_up),
        hidden=_hidden_files(hidden_pack_files(suite, verification.tests), store, task_id).tree,
        test_patch=delta_between(set_up, tested),
        gold=gold,
        suite=suite,
        store=store,
    )


def _gold(evaluator: ResourceView) -> Patch | None:
    value = evaluator.values().get(_GOLD)
    return None if value is None else _PATCH.validate_python(value)


def _files(view: ResourceView, name: str) -> dict[str, PackFile]:
    return {str(file.path): file for resource in view if resource.name == name for file in resource.files}


def hidden_pack_files(suite: CommandSuite | IdSuite, tests: ResourceView) -> tuple[PackFile, ...]:
    """The files of the pack that are written last, in the order of the row."""
    files = _files(tests, _TESTS)
    return tuple(files[str(PurePosixPath(reference.path))] for reference in suite.files)


def _patch_text(patch: Patch | None, files: Mapping[str, PackFile], task_id: str) -> str | None:
    if patch is None or isinstance(patch, str):
        return patch
    if isinstance(patch, InlinePatch):
        return patch.patch
    return read_pack_text(files[str(PurePosixPath(patch.path))], task_id)


def _hidden_files(files: Iterable[PackFile], store: CandidateStore, task_id: str) -> Captured:
    with staging_directory() as staging:
        (place := staging / "hidden").mkdir()
        budget = WorkspaceBudget(MaterializationLimits())
        with _fs.open_directory(place) as root:
            for file in files:
                try:
                    copy_pack_file(file, root, file.mount, budget)
                except (_fs.UnsafeEntry, FileExistsError) as error:
                    raise PackError(f"task {task_id}: tests.files: {error}") from error
            return read_tree(root, store)
