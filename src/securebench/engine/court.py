"""Where candidates are judged: everything that every verdict of a run may rest on, and the way to one."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.dangerous_commands import VerificationPolicy
from securebench.errors import CandidateError, ConfigError, FailureReason, InfrastructureError, IntegrityError
from securebench.records.record import Judged
from securebench.resources import Component
from securebench.sandboxes.base import Sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Status, Verification
from securebench.verifiers.judge.panel import Panel
from securebench.verifiers.registry import verifier_for_task_type


@dataclass(frozen=True, slots=True)
class Court:
    """`store` is where verifiers write; beside the records it would give hidden tests away."""

    sandbox: Sandbox | None
    store: CandidateStore
    seed: bytes
    judge: Panel | None = None
    policy: VerificationPolicy = field(default_factory=VerificationPolicy)

    async def judged(self, task: SecureBenchTask, candidate: CandidateArtifact | None) -> Judged:
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


def failed(error: CandidateError) -> Judged:
    """The verdict on what the candidate caused."""
    return Judged(Status.FAILED, passed=False, score=0.0, failure_reason=error.reason, message=str(error))


def tripped(error: Exception) -> Judged:
    """The verdict where our own code failed on candidate bytes."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__} in {where.name} (line {where.lineno}); please report this"
    return Judged(Status.FAILED, passed=False, score=0.0, failure_reason=FailureReason.INTERNAL_ERROR, message=message)
