"""The real road of a change to a repository: captured by the strict reader or applied as a patch, judged by the change
policy, put on pristine bytes, and tested by the real verifier. Through the engine's own court, so that whatever our
code trips over is seen as a fault."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import anyio
from anyio import to_thread

from securebench._fs import open_directory
from securebench._leftovers import staging_directory
from securebench.audit.plays.repository_tasks import Repository, make_pack
from securebench.audit.plays.terminal import image_of, produce, refused
from securebench.audit.suite.attack import End, Ground, NotHere, Seen
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.engine.court import Court
from securebench.errors import CandidateError, FailureReason, SandboxUnavailable
from securebench.families.base import CandidateKind
from securebench.resources import Component
from securebench.sandboxes.base import Root
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.workspace import Workspace

SUITE_SECONDS = 60
SEED = b"a seed no candidate knows"


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link with this text."""

    target: str


Content = str | Link | None
"""Of one path; None where it is deleted."""
Changes = tuple[tuple[str, Content], ...]


def changes(files: Mapping[str, Content] | Mapping[str, str]) -> Changes:
    return tuple(sorted(files.items()))


@dataclass(frozen=True, slots=True)
class Files:
    """An agent that leaves these files behind, and wants them to pass."""

    repository: Repository
    changes: Changes

    async def on(self, ground: Ground) -> Seen:
        stage = await stage_of(ground, self.repository)
        work = ground.directory / "work"
        await to_thread.run_sync(self._write, stage, work)
        try:
            with open_directory(work) as root:
                candidate = await to_thread.run_sync(stage.workspace.take, root)
        except CandidateError as error:
            return refused(error)
        return await verdict(ground, stage, candidate)

    def _write(self, stage: Stage, work: Path) -> None:
        work.mkdir()
        stage.store.materialize(stage.workspace.pristine, work)
        for path, content in self.changes:
            put(work, path, content)


@dataclass(frozen=True, slots=True)
class PatchText:
    """A patch that arrives as the text of an answer, and wants to pass."""

    repository: Repository
    text: str

    async def on(self, ground: Ground) -> Seen:
        stage = await stage_of(ground, self.repository)
        return await verdict(ground, stage, CandidateArtifact(stage.task.id, CandidateKind.PATCH, patch=self.text))


@dataclass(frozen=True, slots=True)
class Agent:
    """A Python program plays the agent, in the sandbox and the repository with its `.git` that every agent gets. It
    wants its changes to pass, or the file `MARKER` to appear on the host, by whatever is run here on what it left."""

    repository: Repository
    program: str

    async def on(self, ground: Ground) -> Seen:
        stage = await stage_of(ground, self.repository)
        marker = ground.directory / "marker"
        program = f"MARKER = {str(marker)!r}\n{self.program}"
        production = await produce(stage.task, program, ground.sandbox, stage.store)
        if production.candidate is None:
            return refused(production.failure)
        seen = await verdict(ground, stage, production.candidate)
        return Seen(End.REACHED, "a program of the candidate ran on the host") if marker.exists() else seen


@dataclass(frozen=True, slots=True)
class Stage:
    """One repository as a task: its pack, what an agent gets of it, and where everything is stored."""

    task: SecureBenchTask
    store: CandidateStore
    workspace: Workspace


_stages: dict[tuple[str, Root, Repository], Stage] = {}
_locks: dict[tuple[str, Root, Repository], anyio.Lock] = {}


async def stage_of(ground: Ground, repository: Repository) -> Stage:
    """The same for every play on a backend: what a verifier learns about a task, it learns once for each store."""
    key = ground.backend, ground.root, repository
    async with _locks.setdefault(key, anyio.Lock()):
        if key not in _stages:
            _stages[key] = await _new_stage(ground, repository)
    return _stages[key]


async def _new_stage(ground: Ground, repository: Repository) -> Stage:
    directory = Path(mkdtemp(dir=_lasting_directory()))
    image = image_of(ground.root)
    environment = {} if image is None else {"image": image}
    task = make_pack(directory / "pack", repository, environment, timeout_seconds=SUITE_SECONDS)
    store = CandidateStore(directory / "store")
    (staging := directory / "staging").mkdir()
    wanted = WorkspaceRequest(task.id, CandidateKind.PATCH, task.view_for(Component.AGENT), task.environment)
    return Stage(task, store, await build_workspace(wanted, staging, store, ground.sandbox))


@cache
def _lasting_directory() -> Path:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(staging_directory())


async def verdict(ground: Ground, stage: Stage, candidate: CandidateArtifact) -> Seen:
    """What the engine's court says of a candidate. Raises NotHere where nothing here can apply a patch."""
    try:
        judged = await Court(ground.sandbox, stage.store, SEED).judged(stage.task, candidate)
    except SandboxUnavailable as error:
        raise NotHere(str(error)) from error
    reason, detail = str(judged.failure_reason or ""), f"{judged.message}{judged.stderr}"[-500:]
    if judged.status is Status.ERROR or judged.failure_reason is FailureReason.INTERNAL_ERROR:
        return Seen(End.FAULT, detail, reason)
    return Seen(End.REACHED if judged.passed else End.MISSED, detail, reason)


def put(root: Path, path: str, content: Content) -> None:
    """Write, link or remove one path of a tree of ours; what stands in its way goes."""
    place = root / path
    for above in [*reversed(place.relative_to(root).parents)][1:]:
        if (root / above).is_symlink() or (root / above).is_file():
            (root / above).unlink()
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if content is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Link):
        place.symlink_to(content.target)
    else:
        place.write_text(content, encoding="utf-8")
