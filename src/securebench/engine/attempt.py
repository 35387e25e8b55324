"""One attempt at one task, from nothing to a record. Total: whatever happens, there is exactly one record.

Whose fault it was decides the status. What the candidate can cause is `failed`; what the host or the pack caused
is `error`; and where our own code trips over candidate bytes, that is `failed` too, so that crashing us is never
a way out of the score."""

from __future__ import annotations

import codecs
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from securebench.candidates.store import CandidateStore
from securebench.dangerous_commands import VerificationPolicy
from securebench.errors import (
    CandidateError,
    ConfigError,
    FailureReason,
    InfrastructureError,
    IntegrityError,
)
from securebench.families.registry import family
from securebench.harnesses.base import HarnessProducer, ProducerRequest, Production
from securebench.progress import Event, Progress, ProgressEvent
from securebench.records.record import Identity, Judged, candidate_record
from securebench.resources import Component
from securebench.sandboxes.base import Sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status, Verification
from securebench.verifiers.judge.panel import Panel
from securebench.verifiers.registry import verifier_for_task_type


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What all attempts of a run share."""

    identity: Identity
    producer: HarnessProducer
    progress: Progress
    sandbox: Sandbox | None
    store: CandidateStore
    private: CandidateStore  # what verifiers write; beside the records it would give hidden tests away
    judge: Panel | None
    policy: VerificationPolicy
    seed: bytes


async def run_attempt(context: AttemptContext, task: SecureBenchTask, attempt: int) -> dict[str, Any]:
    """Produce, extract, verify; returns the record."""

    def emit(event: Event, **data: Any) -> None:
        context.progress(ProgressEvent(event, task.id, attempt, data))

    started = time.time()
    clock = _Stopwatch()
    emit(Event.TASK_START, task_type=task.task_type)
    emit(Event.PRODUCER_START)
    production, judged = await _produce(context, task, attempt)
    produce_seconds = clock.lap()
    emit(Event.PRODUCER_DONE, seconds=round(produce_seconds, 3), failure_reason=judged and judged.failure_reason)
    if judged is None:
        emit(Event.VERIFIER_START)
        judged = await _verify(context, task, production)
        emit(Event.VERIFIER_DONE, status=judged.status)
    verify_seconds = clock.lap()
    record = candidate_record(
        context.identity,
        task,
        attempt,
        _produced(production, context.store),
        judged,
        {"started_at": started, "produce_seconds": produce_seconds, "verify_seconds": verify_seconds},
    )
    emit(
        Event.TASK_DONE,
        status=judged.status,
        failure_reason=judged.failure_reason,
        seconds=round(produce_seconds + verify_seconds, 3),
    )
    return record


async def _produce(context: AttemptContext, task: SecureBenchTask, attempt: int) -> tuple[Production, Judged | None]:
    """The production, and the verdict where producing already decided it."""
    decoders: dict[str, codecs.IncrementalDecoder] = defaultdict(
        partial(codecs.getincrementaldecoder("utf-8"), "replace")
    )  # a piece may end in a character

    def show(stream: str, data: bytes) -> None:
        if text := decoders[stream].decode(data):
            context.progress(ProgressEvent(Event.PRODUCER_OUTPUT, task.id, attempt, {"stream": stream, "text": text}))

    def started(argv: tuple[str, ...]) -> None:
        context.progress(ProgressEvent(Event.SANDBOX_COMMAND, task.id, attempt, {"argv": list(argv)}))

    def reading(doing: str, files: int, size: int) -> None:
        data = {"doing": doing, "files": files, "bytes": size}
        context.progress(ProgressEvent(Event.WORKSPACE_PROGRESS, task.id, attempt, data))

    request = ProducerRequest(
        task_id=task.id,
        attempt=attempt,
        kind=family(task.task_type).candidate,
        payload=task.agent_payload(),
        view=task.view_for(Component.AGENT),
        environment=task.environment,
        store=context.store,
        on_output=show,
        on_command=started,
        on_progress=reading,
    )
    nothing = Production(candidate=None)
    try:
        production = await context.producer.produce(request)
    except (InfrastructureError, ConfigError, IntegrityError) as error:
        return nothing, Judged(Status.ERROR, message=str(error))
    except Exception as error:  # noqa: BLE001 — the boundary that keeps one task from ending the run
        return nothing, _internal(error)
    if production.failure is not None:
        return production, _failed(production.failure)
    return production, None


async def _verify(context: AttemptContext, task: SecureBenchTask, production: Production) -> Judged:
    verifier = verifier_for_task_type(task.task_type)
    if verifier is None:
        return Judged(Status.PENDING, message=f"{task.task_type} has no verifier yet")
    if production.candidate is None:
        return _failed(CandidateError(FailureReason.NO_CANDIDATE, "nothing was produced"))
    verification = Verification(
        task_id=task.id,
        candidate=production.candidate,
        evaluator=task.view_for(Component.EVALUATOR),
        tests=task.view_for(Component.TEST_SANDBOX),
        worker=task.view_for(Component.WORKER),
        environment=task.environment,
        sandbox=context.sandbox,
        store=context.private,
        judge=context.judge,
        policy=context.policy,
        seed=context.seed,
    )
    try:
        result = await verifier.verify(verification)
    except (InfrastructureError, ConfigError, IntegrityError) as error:
        return Judged(Status.ERROR, message=str(error))
    except CandidateError as error:
        return _failed(error)
    except Exception as error:  # noqa: BLE001 — a verifier that trips over a candidate never passes it
        return _internal(error)
    return Judged(
        status=result.status,
        passed=None if result.status is Status.PENDING else result.passed,
        score=None if result.status is Status.PENDING else result.score,
        assurance=result.assurance,
        failure_reason=result.failure_reason,
        stdout=result.stdout,
        stderr=result.stderr,
        metadata=result.metadata,
        controls=result.controls,
        usage=result.usage,
    )


def _failed(error: CandidateError) -> Judged:
    return Judged(Status.FAILED, passed=False, score=0.0, failure_reason=error.reason, message=str(error))


def _internal(error: Exception) -> Judged:
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__} in {where.name} (line {where.lineno}); please report this"
    return Judged(Status.FAILED, passed=False, score=0.0, failure_reason=FailureReason.INTERNAL_ERROR, message=message)


def _produced(production: Production, store: CandidateStore) -> Mapping[str, Any]:
    """Raises StoreError when the evidence cannot be kept."""
    candidate = production.candidate
    return {
        "text": candidate and candidate.text,
        "patch": candidate and candidate.patch,
        "workspace": candidate and candidate.workspace,
        "digest": candidate and candidate.digest,
        "stdout": production.stdout,
        "stderr": production.stderr,
        "metadata": dict(production.metadata),
        "usage": dict(production.usage),
        "evidence": {
            name: {"digest": store.put(data), "size": len(data)} for name, data in production.evidence.items()
        },
    }


class _Stopwatch:
    def __init__(self) -> None:
        self.mark = time.monotonic()

    def lap(self) -> float:
        before, self.mark = self.mark, time.monotonic()
        return self.mark - before
