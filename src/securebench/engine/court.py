"""Where candidates are judged: everything that every verdict of a run may rest on, and the way to one."""

from __future__ import annotations

import os
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from securebench._leftovers import staging_directory
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.dangerous_commands import VerificationPolicy
from securebench.engine.admission import memory_for_attempts
from securebench.errors import CandidateError, ConfigError, FailureReason, InfrastructureError, IntegrityError
from securebench.records.record import Judged
from securebench.resources import Component
from securebench.sandboxes.ahead import MOST_WAITING, prepared_ahead
from securebench.sandboxes.base import Sandbox
from securebench.sandboxes.warm import warmed
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status, Verification
from securebench.verifiers.judge.panel import Panel
from securebench.verifiers.registry import forget_store, verifier_for_task_type
from securebench.verifiers.shared_files import SharedFiles


class Judging(Protocol):
    """Whoever comes to verdicts: a court here, or one on another machine."""

    async def judged(self, task: SecureBenchTask, candidate: CandidateArtifact | None, attempt: int = 1) -> Judged: ...


@dataclass(frozen=True, slots=True)
class Court:
    """`store` is where verifiers write; beside the records it would give hidden tests away."""

    sandbox: Sandbox | None
    store: CandidateStore
    seed: bytes
    judge: Panel | None = None
    policy: VerificationPolicy = field(default_factory=VerificationPolicy)
    shared: SharedFiles | None = None

    async def judged(
        self,
        task: SecureBenchTask,
        candidate: CandidateArtifact | None,
        attempt: int = 1,  # noqa: ARG002 — the protocol's shape
    ) -> Judged:
        """The verdict on a candidate. Raises InfrastructureError, ConfigError and IntegrityError, which are nobody's
        verdict; whatever the candidate causes is one, also where our own code trips over it."""
        verifier = verifier_for_task_type(task.task_type)
        if verifier is None:
            return Judged(Status.PENDING, message=f"{task.task_type} has no verifier yet")
        if candidate is None:
            return failed(CandidateError(FailureReason.NO_CANDIDATE, "nothing was produced"))
        verification = Verification(
            task_id=task.id,
            candidate=candidate,
            evaluator=task.view_for(Component.EVALUATOR),
            tests=task.view_for(Component.TEST_SANDBOX),
            worker=task.view_for(Component.WORKER),
            environment=task.environment,
            sandbox=self.sandbox,
            store=self.store,
            judge=self.judge,
            policy=self.policy,
            seed=self.seed,
            shared=self.shared,
        )
        try:
            result = await verifier.verify(verification)
        except (InfrastructureError, ConfigError, IntegrityError):
            raise
        except CandidateError as error:
            return failed(error)
        except Exception as error:  # noqa: BLE001 — a verifier that trips over a candidate never passes it
            return tripped(error)
        pending = result.status is Status.PENDING
        return Judged(
            status=result.status,
            passed=None if pending else result.passed,
            score=None if pending else result.score,
            assurance=result.assurance,
            failure_reason=result.failure_reason,
            stdout=result.stdout,
            stderr=result.stderr,
            metadata=result.metadata,
            controls=result.controls,
            usage=result.usage,
        )


@asynccontextmanager
async def open_court(
    sandbox: Sandbox | None,
    candidates: CandidateStore | None,
    seed: bytes,
    judge: Panel | None = None,
    policy: VerificationPolicy | None = None,
    *,
    warm: bool = True,
) -> AsyncIterator[Court]:
    """A court while the context lasts, over what is in `candidates`. What its verifiers write lies in a private place
    and is gone afterwards; sandboxes that are asked for again and again stand ready meanwhile, and rooms are warm."""
    with staging_directory() as private, staging_directory() as shown:
        private.chmod(0o700)
        store, shared = CandidateStore(private / "store", candidates), SharedFiles(shown)
        async with _standing_ready(sandbox, warm) as ready:
            try:
                yield Court(ready, store, seed, judge, policy or VerificationPolicy(), shared)
            finally:
                forget_store(store)


@asynccontextmanager
async def _standing_ready(sandbox: Sandbox | None, warm: bool) -> AsyncIterator[Sandbox | None]:
    if sandbox is None or not warm:
        yield sandbox
        return
    most = min(MOST_WAITING, 2 + 2 * len(os.sched_getaffinity(0)))
    async with prepared_ahead(sandbox, most=most, spare=memory_for_attempts) as ready, warmed(ready) as rooms:
        yield rooms


def failed(error: CandidateError) -> Judged:
    """The verdict on what the candidate caused."""
    return Judged(Status.FAILED, passed=False, score=0.0, failure_reason=error.reason, message=str(error))


def tripped(error: Exception) -> Judged:
    """The verdict where our own code failed on candidate bytes."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__} in {where.name} (line {where.lineno}); please report this"
    return Judged(Status.FAILED, passed=False, score=0.0, failure_reason=FailureReason.INTERNAL_ERROR, message=message)
