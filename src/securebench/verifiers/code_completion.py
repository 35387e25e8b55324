"""`code_completion`: tests in one room, the candidate's code in another, the verdict in neither."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

from securebench.answers.python_join import completed
from securebench.candidates.store import CandidateStore
from securebench.errors import FailureReason, PackError, SandboxUnavailable
from securebench.families.code_completion import (
    CaseTests,
    CodeCompletionEval,
    CodeCompletionInput,
    InlineTests,
    IoTests,
    is_python,
)
from securebench.families.generated_cases import draw_calls
from securebench.resources import Component, PackFile
from securebench.sandboxes.base import Bind, Limits, Mount, Sandbox, SandboxSpec, root_of
from securebench.verifiers._pack_text import read_pack_text
from securebench.verifiers._text_answers import typed
from securebench.verifiers.base import Assurance, Status, Verification, VerificationResult
from securebench.verifiers.programs import DEFAULT_SECONDS, Program, described, run_program
from securebench.verifiers.rooms import evaluate
from securebench.verifiers.rooms.answers import answered
from securebench.verifiers.rooms.libraries import INSIDE, needs_pytest, pytest_mounts
from securebench.verifiers.rooms.relay import Conversation, Meter, Rooms, converse
from securebench.verifiers.shared_files import shared_directory
from securebench.workspaces.materialization import VisibilityAwareMaterializer

TOTAL_SECONDS = 60.0
CALL_SECONDS = 30.0
_MIB = 1024 * 1024
_ROOM = Limits(memory=1024 * _MIB, pids=64, output=256 * 1024)


@dataclass(slots=True)
class CodeCompletionVerifier:
    """Judges a function or a program; keeps what references answered for the other attempts of the same run, which is
    where the store is the same: another run may have another pack."""

    _answers: dict[tuple[str, bytes, CandidateStore | None], list[dict[str, Any]]] = field(default_factory=dict)

    def forget(self, store: CandidateStore) -> None:
        """That run is over."""
        for key in [key for key in self._answers if key[2] is store]:
            del self._answers[key]

    async def verify(self, verification: Verification) -> VerificationResult:
        """Raises PackError for rows that cannot be judged, SandboxError and SandboxUnavailable for the host."""
        task = verification.task_id
        public = typed(CodeCompletionInput, verification.worker, task)
        hidden = ("reference_solution", "canonical_solution")
        tests = typed(CodeCompletionEval, verification.tests, task, without=hidden).tests
        if verification.sandbox is None:
            raise SandboxUnavailable(
                "this verdict needs a sandbox, and the run has none", "Check `securebench doctor`."
            )
        if isinstance(tests, IoTests):
            return await _programs(verification, public, tests, verification.sandbox)
        if not is_python(public.language):
            raise PackError(f"task {task}: tests that call functions need language: python; use tests of source: io")
        start, mounts = _start(verification, public, tests)
        seconds = getattr(tests, "timeout_seconds", None) or verification.environment.timeout_seconds or TOTAL_SECONDS
        if isinstance(tests, CaseTests) and tests.generate is not None:
            key = task, verification.seed, verification.store
            if key not in self._answers:
                given = _reference(verification, public)
                self._answers[key] = await answered(
                    task,
                    draw_calls(tests.generate, Random(_order(verification))),  # noqa: S311 — seeded with a secret
                    partial(_rooms, verification, seconds=seconds, sandbox=verification.sandbox, source=given),
                    start,
                    tests.generate.tolerance,
                )
            start["cases"] = [*start["cases"], *self._answers[key]]
        seen = await _rooms(verification, start, mounts, seconds, verification.sandbox)
        if seen.report is not None and seen.report.get("pack") is not None:
            raise PackError(f"task {task}: {seen.report['pack']}")
        return _result(task, seen, start)


def _start(
    verification: Verification, public: CodeCompletionInput, tests: Any
) -> tuple[dict[str, Any], tuple[Mount, ...]]:
    """The message that starts the test room, and what that room needs to see."""
    start: dict[str, Any] = {
        "entry": public.entry_point,
        "public": [text for text in (public.prompt, public.starter_code) if text],
        "seed": _order(verification),
        "shared": False,
        "pytest": False,
        "libraries": [INSIDE],
    }
    if isinstance(tests, CaseTests):
        cases = [case.model_dump(mode="json", include=case.model_fields_set) for case in tests.cases]
        return start | {"style": "cases", "cases": cases}, ()
    code = tests.code if isinstance(tests, InlineTests) else read_pack_text(_file(verification), verification.task_id)
    under_pytest = needs_pytest(code)
    mounts = pytest_mounts() if under_pytest else ()
    return start | {"style": "suite", "code": code, "pytest": under_pytest}, mounts


def _file(verification: Verification) -> PackFile:
    """The one file that `tests` names."""
    files = [file for resource in verification.tests if resource.name == "tests" for file in resource.files]
    if len(files) != 1:
        raise PackError(f"task {verification.task_id}: tests names no file, or more than one")
    return files[0]


def _order(verification: Verification) -> str:
    """The secret from which the order of this task's tests follows."""
    return hashlib.sha256(b"order\0" + verification.seed + b"\0" + verification.task_id.encode()).hexdigest()


def _reference(verification: Verification, public: CodeCompletionInput) -> str:
    """The solution whose answers are right; only the rest of the prompt's function where it is written that way."""
    for name in ("reference_solution", "canonical_solution"):
        for resource in verification.evaluator:
            if resource.name == name and resource.value is not None:
                given = resource.value
                text = given if isinstance(given, str) else read_pack_text(resource.files[0], verification.task_id)
                return completed(text, public.starter_code, public.prompt, public.entry_point)[0]
    raise PackError(f"task {verification.task_id}: tests.generate needs a reference solution")


async def _rooms(
    verification: Verification,
    start: Mapping[str, Any],
    mounts: tuple[Mount, ...],
    seconds: float,
    sandbox: Sandbox,
    source: str | None = None,
) -> Conversation:
    source = verification.candidate.text or "" if source is None else source
    meter = Meter(total_seconds=seconds, call_seconds=min(seconds, CALL_SECONDS))
    async with _public_files(verification) as files:
        worker = _spec(verification, seconds)
        worker = replace(worker, mounts=files, cwd=worker.cwd if files else "/")
        rooms = Rooms(sandbox, replace(worker, mounts=(*files, *mounts)), worker)
        seen = await converse(rooms, start, source, meter)
        if seen.report is not None and seen.report.get("stale"):
            # These tests keep things of the candidate's from one test to the next.
            seen = await converse(rooms, {**start, "shared": True}, source, meter)
    return seen


@asynccontextmanager
async def _public_files(verification: Verification) -> AsyncIterator[tuple[Mount, ...]]:
    """The task's public files in its working directory, read-only, where it has any."""
    if not verification.worker.files():
        yield ()
        return
    materializer = VisibilityAwareMaterializer(Component.WORKER)
    plan = materializer.plan(verification.worker)
    async with shared_directory(verification.shared, plan, partial(materializer.materialize, plan)) as directory:
        yield (Bind(directory, verification.environment.workdir),)


def _spec(verification: Verification, seconds: float) -> SandboxSpec:
    environment = verification.environment
    limits = replace(
        _ROOM,
        wall_seconds=2 * seconds + 120.0,  # the meter's deadlines come first
        memory=environment.memory or _ROOM.memory,
        pids=environment.pids or _ROOM.pids,
        cpus=environment.cpus,
    )
    root = root_of(environment.image)
    return SandboxSpec(root=root, cwd=environment.workdir, limits=limits)


def _result(task_id: str, seen: Conversation, start: Mapping[str, Any]) -> VerificationResult:
    verdict = evaluate.judge(seen)
    metadata = {"rule": verdict.rule, "runner": "pytest" if start["pytest"] else start["style"]}
    return VerificationResult(
        task_id=task_id,
        status=Status.PASSED if verdict.passed else Status.FAILED,
        passed=verdict.passed,
        score=1.0 if verdict.passed else 0.0,
        assurance=Assurance.ISOLATED,
        failure_reason=verdict.reason,
        metadata=MappingProxyType({**metadata, **evaluate.described(seen)}),
        usage=MappingProxyType(evaluate.used(seen)),
    )


async def _programs(
    verification: Verification, public: CodeCompletionInput, tests: IoTests, sandbox: Sandbox
) -> VerificationResult:
    seconds = tests.timeout_seconds or verification.environment.timeout_seconds or DEFAULT_SECONDS
    spec = _spec(verification, seconds)
    spec = replace(spec, limits=replace(spec.limits, wall_seconds=seconds))
    program = Program(
        task_id=verification.task_id,
        source=verification.candidate.text or "",
        language=public.language,
        tests=tests,
        checker=_file(verification) if tests.checker is not None else None,
        public=verification.worker,
        sandbox=sandbox,
        spec=spec,
        seed=_order(verification),
    )
    runs = await run_program(program)
    # The one path to a pass: every case has exactly one run, and each is right.
    passed = sorted(ran.test for ran in runs) == list(range(len(tests.cases))) and all(
        ran.outcome == "passed" and ran.reason is None for ran in runs
    )
    reason = None if passed else next((ran.reason for ran in runs if ran.reason), FailureReason.WRONG_ANSWER)
    return VerificationResult(
        task_id=verification.task_id,
        status=Status.PASSED if passed else Status.FAILED,
        passed=passed,
        score=1.0 if passed else 0.0,
        assurance=Assurance.ISOLATED,
        failure_reason=reason,
        metadata=MappingProxyType({"rule": "every case is right" if passed else "a case is not", "runner": "io"})
        | described(runs),
    )
