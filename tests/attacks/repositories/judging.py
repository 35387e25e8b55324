"""A candidate's changes before the real verifier of a repository."""

from __future__ import annotations

from collections.abc import Mapping

from securebench.audit.plays.repository_tasks import Repository, as_patch, make_pack
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.families.base import CandidateKind
from securebench.resources import Component
from securebench.sandboxes.base import Sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Verification, VerificationResult
from securebench.verifiers.repo_patch import RepoPatchVerifier

__all__ = ["SEED", "as_patch", "judge", "make_pack"]

SEED = b"a seed no candidate knows"


async def judge(
    verifier: RepoPatchVerifier,
    task: SecureBenchTask,
    repository: Repository,
    changes: Mapping[str, str],
    sandbox: Sandbox,
    store: CandidateStore,
) -> VerificationResult:
    """The verdict on changes that arrive as the text of a patch."""
    patch = as_patch(repository.files, changes)
    return await verifier.verify(
        Verification(
            task_id=task.id,
            candidate=CandidateArtifact(task.id, CandidateKind.PATCH, patch=patch),
            evaluator=task.view_for(Component.EVALUATOR),
            tests=task.view_for(Component.TEST_SANDBOX),
            worker=task.view_for(Component.WORKER),
            environment=task.environment,
            sandbox=sandbox,
            store=store,
            seed=SEED,
        )
    )
