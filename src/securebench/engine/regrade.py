"""Stored candidates before the present verifiers, side by side. The run they came from is only read.

An attempt whose producing failed stays failed; one that cannot be judged from what is stored is named with the
reason. Nothing is passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from securebench._tasks import one_error
from securebench.benchmark_compiler import CompiledTasks
from securebench.candidates.artifact import CandidateArtifact
from securebench.engine.admission import Memory, verifier_memory
from securebench.engine.attempt import VERIFY_GUARD
from securebench.engine.court import Court, failed
from securebench.engine.interruption import Interruption, interruptible
from securebench.engine.regrade_report import Category, Regraded, Verdict
from securebench.engine.since import Since
from securebench.engine.stored_candidate import Rebuilding, not_judged
from securebench.engine.stored_run import Key, StoredRecord, StoredRun
from securebench.errors import (
    CandidateError,
    ConfigError,
    FailureReason,
    InfrastructureError,
    IntegrityError,
    SandboxUnavailable,
)
from securebench.families.base import CandidateKind
from securebench.records.record import Judged
from securebench.records.redaction import Redactor
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Assurance, Status

_WAITS = (1.0, 5.0)  # seconds before a fault of the host is tried again
_LONGEST = 2000  # characters of a message
_UNSTEADY = "nothing that decides it changed: this verdict is not the same every time"


@dataclass(slots=True)
class Regrading:
    """What all attempts share. `done` grows as they come to their end."""

    run: StoredRun
    tasks: CompiledTasks
    court: Court
    since: Since
    memory: Memory
    workers: int
    on_done: Callable[[Regraded], None]
    done: list[Regraded] = field(default_factory=list)
    _numbers: dict[str, int] = field(init=False)
    _rebuilding: Rebuilding = field(init=False)

    def __post_init__(self) -> None:
        self._numbers = {entry.id: number for number, entry in enumerate(self.tasks.entries)}
        self._rebuilding = Rebuilding(self.run.candidates)

    async def judge_all(self, keys: Sequence[Key]) -> bool:
        """Whether all came to their end: an interrupt stops what is being verified. Raises StoreError, and
        IntegrityError where the records change meanwhile."""
        todo, reading = iter(keys), anyio.CapacityLimiter(1)
        async with interruptible(lambda: None) as interruption, one_error(), anyio.create_task_group() as group:
            for _ in range(self.workers):
                group.start_soon(self._lane, interruption, todo, reading)
        order = {key: number for number, key in enumerate(keys)}
        self.done.sort(key=lambda one: order[one.task_id, one.attempt])
        return not interruption.asked

    async def _lane(self, interruption: Interruption, todo: Iterator[Key], reading: anyio.CapacityLimiter) -> None:
        for key in todo:
            if interruption.asked:
                return
            with interruption.producing() as scope:  # nothing is lost by stopping at once
                regraded = await self._one(self.run.record(key), reading)
            if scope.cancelled_caught:
                return
            self.done.append(regraded)
            self.on_done(regraded)

    async def _one(self, record: StoredRecord, reading: anyio.CapacityLimiter) -> Regraded:
        old = _recorded(record.fields)
        if (reason := not_judged(record.shape)) is not None:
            return _regraded(record, Category.NOT_JUDGED_BEFORE, old, None, reason)
        number = self._numbers.get(record.shape.task_id)
        if number is None:
            return _regraded(record, Category.UNVERIFIABLE, old, None, "the pack has no such task")
        task = self.tasks[number]
        redact = Redactor(task.resources.secrets(), task.resources.public())
        old = _scrubbed(old, redact)
        try:
            candidate = await anyio.to_thread.run_sync(
                self._rebuilding.candidate, record.shape, CandidateKind(task.candidate_kind), limiter=reading
            )
            async with self.memory.hold(verifier_memory(task.task_type, task.environment.memory)):
                judged = await self._judged(task, candidate)
        except IntegrityError as error:
            return _regraded(record, Category.UNVERIFIABLE, old, None, redact.text(str(error)))
        except (ConfigError, InfrastructureError) as error:
            return _regraded(record, Category.ERROR, old, None, redact.text(str(error)))
        new = _scrubbed(_now(judged, record), redact)
        if new == old:
            return _regraded(record, Category.SAME, old, new)
        if new.status == Status.PENDING:
            reason = "a model must judge it, and none was named: give --config"
            return _regraded(record, Category.UNVERIFIABLE, old, None, reason)
        causes = tuple(self.since.causes(record.shape, self.tasks.entries[number]))
        return _regraded(record, Category.CHANGED, old, new, *(causes or (_UNSTEADY,)))

    async def _judged(self, task: SecureBenchTask, candidate: CandidateArtifact) -> Judged:
        """As a run does it. Raises ConfigError, IntegrityError, InfrastructureError."""
        with anyio.move_on_after(VERIFY_GUARD):
            for wait in _WAITS:
                try:
                    return await self.court.judged(task, candidate)
                except SandboxUnavailable:
                    raise
                except InfrastructureError:
                    await anyio.sleep(wait)
            return await self.court.judged(task, candidate)
        return failed(CandidateError(FailureReason.WORKER_TIMEOUT, "verifying took too long in all"))


def _recorded(fields: dict[str, Any]) -> Verdict:
    note = fields.get("verifier_metadata", {}).get("note", "")
    return Verdict(
        status=fields["verification_status"],
        score=fields["score"],
        assurance=fields["assurance"],
        failure_reason=fields["failure_reason"],
        message=_message(fields.get("failure_message", ""), note, fields.get("verifier_stderr", "")),
    )


def _now(judged: Judged, record: StoredRecord) -> Verdict:
    # What was produced without the audit is not made better by verifying it with one.
    unsafe = record.shape.assurance == Assurance.UNSAFE
    return Verdict(
        status=str(judged.status),
        score=judged.score,
        assurance=str(Assurance.UNSAFE) if unsafe else _text(judged.assurance),
        failure_reason=_text(judged.failure_reason),
        message=_message(judged.message, (judged.metadata or {}).get("note", ""), judged.stderr),
    )


def _text(value: str | None) -> str | None:
    return None if value is None else str(value)


def _message(*parts: Any) -> str:
    return next((str(part) for part in parts if part), "")


def _scrubbed(verdict: Verdict, redact: Redactor) -> Verdict:
    return Verdict(
        verdict.status,
        verdict.score,
        verdict.assurance,
        verdict.failure_reason,
        redact.text(verdict.message)[:_LONGEST],
    )


def _regraded(record: StoredRecord, category: Category, old: Verdict, new: Verdict | None, *why: str) -> Regraded:
    shape = record.shape
    reasons = tuple(reason[:_LONGEST] for reason in why)
    return Regraded(shape.task_id, shape.attempt, shape.task_type, record.line, category, old, new, reasons)
