"""`repo_patch`: what really changed, on pristine bytes, judged by tests that were restored last.

A suite that imports the repository shares its process, so its word alone is never enough (`suites.evaluation`): the
verdict is `shared_process`, and the controls it rests on are in the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import anyio
from anyio import to_thread

from securebench.candidates.change_policy import ChangePolicy, Judgement
from securebench.candidates.patch_application import apply_patch
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, TreeEntry, apply_delta, delta_between
from securebench.errors import CandidateError, FailureReason, InfrastructureError, IntegrityError, PackError
from securebench.families.repo_patch import IdSuite, RepoPatchEval
from securebench.sandboxes.base import Sandbox
from securebench.verifiers._text_answers import typed
from securebench.verifiers.base import Assurance, Status, Verification, VerificationResult
from securebench.verifiers.host_tools import host_sandbox
from securebench.verifiers.rooms.libraries import pytest_mounts
from securebench.verifiers.suites.broken import broken
from securebench.verifiers.suites.command import CommandTask, CommandVerdict
from securebench.verifiers.suites.evaluation import (
    Control,
    SuiteVerdict,
    decoys_that_fail,
    guessing,
    judge_sabotage,
    judge_suite,
)
from securebench.verifiers.suites.ids import TestId
from securebench.verifiers.suites.overlays import laid_over
from securebench.verifiers.suites.repository_task import (
    RepositoryTask,
    expected_tests,
    hidden_pack_files,
    load_repository_task,
    secret_random,
)
from securebench.verifiers.suites.run import SuitePlace, SuiteRun, last_words
from securebench.verifiers.suites.staging import Staged, stage_suite


@dataclass(frozen=True)
class SuiteTask:
    """A task whose suite is ready to run on any tree, and what the reference solution taught about its controls."""

    repository: RepositoryTask
    staged: Staged
    place: SuitePlace
    fail_to_pass: tuple[TestId, ...]
    must_fail: frozenset[str] | None = None  # decoys that the reference fails; None where there is no reference
    sabotage_fails: tuple[TestId, ...] = ()  # tests that fail once the reference is broken

    def over(self, store: CandidateStore) -> SuiteTask:
        """As `RepositoryTask.over`."""
        return replace(self, repository=self.repository.over(store), place=replace(self.place, store=store))

    async def run(self, tree: Tree) -> SuiteRun:
        """The suite on a tree, hidden tests, twins and canary put in last."""
        ready = self.repository.ready(tree)
        entries = [self._entry(path, data) for path, data in sorted(self.staged.files.items())]
        return await self.place.run(laid_over(ready, entries), self.staged)

    def _entry(self, path: str, data: bytes) -> TreeEntry:
        return TreeEntry.file(self.repository.place(path), self.repository.store.put(data), len(data))


@dataclass(slots=True)
class RepoPatchVerifier:
    """Keeps what it learned about a task for the other attempts of the same run, which is where the store is the same:
    another run may have another pack."""

    _suites: dict[tuple[str, bytes, CandidateStore], SuiteTask | CommandTask] = field(default_factory=dict)
    _locks: dict[tuple[str, bytes, CandidateStore], anyio.Lock] = field(default_factory=dict)

    async def verify(self, verification: Verification) -> VerificationResult:
        sandbox, store = verification.sandbox, verification.store
        if sandbox is None or store is None:
            raise InfrastructureError("a patch cannot be verified without a sandbox and a candidate store")
        key = verification.task_id, verification.seed, store
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._suites:
                try:
                    self._suites[key] = await _ready_task(verification, sandbox, store)
                except CandidateError as error:  # only the pack's own bytes were looked at so far
                    raise PackError(f"task {verification.task_id}: {error}") from error
        layer = store.layer()  # what one candidate brings is needed for one verdict
        try:
            return await _judged(verification, self._suites[key].over(layer), sandbox, layer)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(layer.remove)

    def forget(self, store: CandidateStore) -> None:
        """That run is over."""
        for known in (self._suites, self._locks):
            for key in [key for key in known if key[2] is store]:
                del known[key]


async def _judged(
    verification: Verification, task: SuiteTask | CommandTask, sandbox: Sandbox, store: CandidateStore
) -> VerificationResult:
    judgement = await _judged_change(verification, task.repository, sandbox, store)
    judgement.check()
    tree = apply_delta(task.repository.pristine, judgement.allowed)
    if isinstance(task, CommandTask):
        return _command_result(task.task_id, await task.judge(tree), judgement)
    return await _verdict(verification.task_id, task, tree, judgement)


async def _ready_task(verification: Verification, sandbox: Sandbox, store: CandidateStore) -> SuiteTask | CommandTask:
    repository = await load_repository_task(verification, sandbox, store)
    suite = repository.suite
    if isinstance(suite, IdSuite):
        return await _suite_task(repository, suite, verification, sandbox, store)
    files = hidden_pack_files(suite, verification.tests)
    environment, shared = verification.environment, verification.shared
    task = CommandTask(verification.task_id, repository, suite, files, environment, sandbox, store, shared)
    return await task.calibrated()


async def _suite_task(
    repository: RepositoryTask, suite: IdSuite, verification: Verification, sandbox: Sandbox, store: CandidateStore
) -> SuiteTask:
    """Stage the suite, and run it on the reference solution: a control that fails there would accuse the honest."""
    task_id = verification.task_id
    fail_to_pass, pass_to_pass = expected_tests(suite, task_id)
    expected = (*fail_to_pass, *pass_to_pass)
    ready = repository.ready(repository.gold or repository.pristine)
    staged = stage_suite(
        suite.source,
        expected,
        lambda file: repository.text(ready, repository.place(file)),
        secret_random(verification.seed, task_id),
    )
    workdir = verification.environment.workdir
    place = SuitePlace(
        sandbox,
        store,
        verification.environment,
        pytest_mounts() if suite.source == "pytest" else (),
        workdir=f"{workdir}/{suite.workdir}" if suite.workdir else workdir,
        timeout_seconds=suite.timeout_seconds,
        beside=tuple(sorted({folder for test in expected if (folder := repository.folder_on_path(ready, test.file))})),
        shared=verification.shared,
        python=suite.python,
    )
    task = SuiteTask(repository, staged, place, fail_to_pass)
    if repository.gold is None:
        return task
    run = await task.run(repository.gold)
    must_fail = decoys_that_fail(staged, run.report)
    verdict = judge_suite(staged, run.report, must_fail)
    if not verdict.passed:
        why = verdict.message
        if not run.report.outcomes or not run.report.ended:  # nothing was looked at, or not everything
            program = "" if run.result.started else "tests.python cannot be started: "
            why += f": {program}{last_words(run.result)}"
        raise PackError(f"task {task_id}: the gold patch does not pass its own tests here: {why}")
    worse = await task.run(await to_thread.run_sync(broken, repository, repository.gold))
    fails = tuple(test for test in fail_to_pass if not worse.report.passed(str(staged.truths[test])))
    return SuiteTask(repository, staged, place, fail_to_pass, must_fail, fails)


async def _judged_change(
    verification: Verification, repository: RepositoryTask, sandbox: Sandbox, store: CandidateStore
) -> Judgement:
    candidate = verification.candidate
    delta = candidate.delta
    if delta is None:
        captured = await apply_patch(candidate.patch or "", repository.pristine, store, await host_sandbox(sandbox))
        delta = delta_between(repository.pristine, captured.tree)
    try:
        apply_delta(repository.pristine, delta)
    except ValueError as error:
        raise IntegrityError(f"the candidate was not made from this task's repository: {error}") from error
    values = typed(RepoPatchEval, verification.tests, verification.task_id).candidate_policy
    try:
        policy = ChangePolicy.of(values, repository.protected)
    except ValueError as error:
        raise PackError(f"task {verification.task_id}: candidate_policy: {error}") from error
    # What goes wrong from here on is about the candidate's bytes, of which there may be many.
    return await to_thread.run_sync(policy.judge, delta, store.read)


async def _verdict(task_id: str, task: SuiteTask, tree: Tree, judgement: Judgement) -> VerificationResult:
    run = await task.run(tree)
    verdict = judge_suite(task.staged, run.report, task.must_fail)
    controls = [*verdict.controls]
    reason, message = verdict.reason, verdict.message
    if run.stopped is not None:  # whatever it reported before
        reason, message = reason or FailureReason.TESTS_FAILED, f"the suite {run.stopped}"
    if reason is None:
        sabotage = await _sabotage(task, tree)
        controls.append(sabotage)
        if sabotage.held is False:
            reason, message = FailureReason.TAMPERING, f"the suite passes on broken code: {sabotage.detail}"
    return VerificationResult(
        task_id=task_id,
        status=Status.FAILED if reason else Status.PASSED,
        passed=reason is None,
        score=0.0 if reason else 1.0,
        assurance=Assurance.SHARED_PROCESS,
        failure_reason=reason,
        stderr=message,
        metadata=MappingProxyType(_metadata(verdict, task, judgement)),
        controls=tuple(control.as_record() for control in controls),
        usage=_usage(run),
    )


async def _sabotage(task: SuiteTask, tree: Tree) -> Control:
    if task.repository.gold is None:
        return Control("sabotage", None, "not run: the row has no gold patch to say what to break")
    if not task.sabotage_fails:
        return Control("sabotage", None, "not run: no test fails on the broken reference")
    run = await task.run(await to_thread.run_sync(broken, task.repository, tree))
    # Only what the gold patch mends is broken, never what the candidate chose: breaking its own functions would break
    # whatever forges the results along with them.
    return judge_sabotage(task.staged, run.report, task.sabotage_fails)


def _metadata(verdict: SuiteVerdict, task: SuiteTask, judgement: Judgement) -> dict[str, Any]:
    """Test ids are private: tests appear by number, in the order of the row."""
    wanted = frozenset(task.fail_to_pass)
    return {
        "rule": "suite",
        "tests": {
            "fail_to_pass": [verdict.outcomes[test] for test in task.fail_to_pass],
            "pass_to_pass": [outcome for test, outcome in verdict.outcomes.items() if test not in wanted],
            "count": len(verdict.outcomes),
        },
        "twins": {
            "assertions": task.staged.assertions,
            "twinned": task.staged.twinned,
            "chance_of_guessing": guessing(task.staged, task.fail_to_pass, task.must_fail),
        },
        "changes": judgement.as_record(),
    }


def _usage(run: SuiteRun) -> Mapping[str, Any]:
    usage = run.result.usage
    return {
        "wall_seconds": round(usage.wall_seconds, 4),
        "cpu_seconds": usage.cpu_seconds,
        "peak_memory": usage.peak_memory,
        "guarantees": sorted(run.result.guarantees),
    }


def _command_result(task_id: str, verdict: CommandVerdict, judgement: Judgement) -> VerificationResult:
    reason = FailureReason.TAMPERING if verdict.tampered else FailureReason.TESTS_FAILED
    return VerificationResult(
        task_id=task_id,
        status=Status.PASSED if verdict.passed else Status.FAILED,
        passed=verdict.passed,
        score=1.0 if verdict.passed else 0.0,
        assurance=verdict.assurance,
        failure_reason=None if verdict.passed else reason,
        stdout=verdict.stdout,
        stderr=verdict.stderr,
        metadata=MappingProxyType({"rule": "command", "note": verdict.note, "changes": judgement.as_record()}),
        controls=tuple(control.as_record() for control in verdict.controls),
    )
