"""Trials of a pack's rows that run code: doing nothing must fail, the reference must pass, every mutant must fail.

A row whose trials come out otherwise is not worth trusting, whatever scores are computed on it."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import anyio

from securebench import _fs
from securebench._leftovers import staging_directory
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Delta
from securebench.engine.court import Court
from securebench.engine.preflight import task_roots
from securebench.errors import ConfigError, FailureReason, InfrastructureError, IntegrityError, PackError
from securebench.families.base import CandidateKind
from securebench.families.registry import FAMILIES, family
from securebench.records.redaction import Redactor
from securebench.resources import Component, PackFile, Resource
from securebench.sandboxes.base import ISOLATED, Sandbox
from securebench.sandboxes.select import select_sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers._pack_text import read_pack_text
from securebench.verifiers.base import Status
from securebench.verifiers.suites.overlays import laid_over
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget

REFERENCES = ("reference_solution", "canonical_solution", "gold_patch", "reference_workspace")
MUTANTS = "mutants"


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate whose verdict is known before it is judged."""

    task_id: str
    name: str
    must_pass: bool
    outcome: str = ""  # passed, failed, pending or error
    message: str = ""

    @property
    def held(self) -> bool:
        return self.outcome == ("passed" if self.must_pass else "failed")


@dataclass(slots=True)
class TrialReport:
    """Every trial of a pack, and the rows that have no reference solution to try."""

    trials: list[Trial] = field(default_factory=list)
    without_reference: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.held]

    @property
    def ok(self) -> bool:
        return not self.broken

    def as_json(self) -> dict[str, Any]:
        return {
            "trials": len(self.trials),
            "broken_trials": [
                {"task_id": t.task_id, "trial": t.name, "seen": t.outcome, "message": t.message} for t in self.broken
            ],
            "rows_without_reference": self.without_reference,
        }


def runs_code(pack: BenchmarkPack) -> bool:
    return any(FAMILIES[entry.family].executes for entry in pack.entries)


async def try_pack(pack: BenchmarkPack, on_trial: Callable[[Trial], None], workers: int | None = None) -> TrialReport:
    """Run every trial of every row that runs code. Raises SandboxUnavailable where this host cannot."""
    tasks = [task for task in compile_benchmark_pack(pack) if family(task.task_type).executes]
    selection = await select_sandbox("auto", ISOLATED, task_roots(task.environment.image for task in tasks))
    report = TrialReport()
    limiter = anyio.CapacityLimiter(workers or len(os.sched_getaffinity(0)))
    with staging_directory() as staging:
        sandbox, store = selection.sandbox, CandidateStore(staging / "store")
        trials = _Trials(sandbox, store, Court(sandbox, store, secrets.token_bytes(32)))

        async def one(task: SecureBenchTask) -> None:
            async with limiter:
                async for trial in trials.of(task):
                    report.trials.append(trial)
                    on_trial(trial)

        async with anyio.create_task_group() as group:
            for task in tasks:
                if not _references(task):
                    report.without_reference.append(task.id)
                group.start_soon(one, task)
    report.trials.sort(key=lambda trial: (trial.task_id, trial.name))
    return report


def _references(task: SecureBenchTask) -> list[Resource]:
    return [r for r in task.resources.resources if r.name in REFERENCES and r.value is not None]


@dataclass(frozen=True)
class _Trials:
    """Makes candidates of known worth and has them judged."""

    sandbox: Sandbox
    store: CandidateStore
    court: Court

    async def of(self, task: SecureBenchTask) -> AsyncIterator[Trial]:
        for name, must_pass, given in _candidates(task):
            trial = Trial(task.id, name, must_pass)
            try:
                async with self._candidate(task, given) as candidate:
                    ended = await self._judged(task, trial, candidate)
            except (InfrastructureError, ConfigError, IntegrityError) as error:
                ended = _ended(trial, "error", str(error))
            redact = Redactor(task.resources.secrets(), task.resources.public())
            yield replace(ended, message=redact.text(ended.message))

    async def _judged(self, task: SecureBenchTask, trial: Trial, candidate: CandidateArtifact) -> Trial:
        judged = await self.court.judged(task, candidate)
        note = str((judged.metadata or {}).get("note", ""))
        message = judged.message or note or judged.stderr[-400:]
        if judged.failure_reason is FailureReason.INTERNAL_ERROR:  # a failure of ours must not look like a refusal
            return _ended(trial, str(Status.ERROR), message)
        return _ended(trial, judged.status, message)

    @asynccontextmanager
    async def _candidate(self, task: SecureBenchTask, given: str | PackFile | None) -> AsyncIterator[CandidateArtifact]:
        kind = family(task.task_type).candidate
        if kind is CandidateKind.WORKSPACE:
            yield await self._workspace(task, given if isinstance(given, PackFile) else None)
        elif kind is CandidateKind.PATCH:
            text = _text(task, given)
            delta = None if text else Delta()
            yield CandidateArtifact(task.id, kind, patch=text, delta=delta)
        else:
            yield CandidateArtifact(task.id, kind, text=_text(task, given))

    async def _workspace(self, task: SecureBenchTask, overlay: PackFile | None) -> CandidateArtifact:
        with staging_directory() as staging:
            (place := staging / "workspace").mkdir()
            view = task.view_for(Component.WORKER)
            request = WorkspaceRequest(task.id, CandidateKind.WORKSPACE, view, task.environment)
            tree = (await build_workspace(request, place, self.store, self.sandbox)).pristine
            if overlay is not None:
                tree = laid_over(tree, _pack_tree(overlay, staging, self.store))
        return CandidateArtifact(task.id, CandidateKind.WORKSPACE, workspace=self.store.save(tree))


def _pack_tree(file: PackFile, staging: Path, store: CandidateStore) -> Iterable[Any]:
    (place := staging / "overlay").mkdir()
    with _fs.open_directory(place) as root:
        copy_pack_file(file, root, PurePosixPath("overlay"), WorkspaceBudget(MaterializationLimits()))
    if not (place / "overlay").is_dir():
        raise PackError("reference_workspace and mutants name directories, whose files are laid over the workspace")
    with _fs.open_directory(place / "overlay") as root:
        return read_tree(root, store).tree.entries


def _candidates(task: SecureBenchTask) -> Iterator[tuple[str, bool, str | PackFile | None]]:
    """Doing nothing; the reference solutions; the mutants. As text, as a file of the pack, or nothing."""
    yield "base", False, None
    for resource in _references(task):
        given = _given(resource)[0]
        yield resource.name, True, _whole(task, given) if resource.name == "canonical_solution" else given
    for resource in task.resources.resources:
        if resource.name == MUTANTS and resource.value:
            for number, given in enumerate(_given(resource), 1):
                yield f"mutant {number}", False, given


def _given(resource: Resource) -> list[str | PackFile]:
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


def _whole(task: SecureBenchTask, given: str | PackFile) -> str:
    """A canonical solution may be only the rest of a function whose head stands in the prompt."""
    text, public = _text(task, given), task.view_for(Component.WORKER).values()
    entry = public.get("entry_point")
    if entry is None or f"def {entry}" in text or f"class {entry}" in text:
        return text
    return str(public.get("starter_code") or public["prompt"]) + text


def _text(task: SecureBenchTask, given: str | PackFile | None) -> str:
    if given is None:
        return task.view_for(Component.WORKER).values().get("starter_code") or ""
    return given if isinstance(given, str) else read_pack_text(given, task.id)


def _ended(trial: Trial, outcome: str, message: str) -> Trial:
    return Trial(trial.task_id, trial.name, trial.must_pass, outcome, message)
