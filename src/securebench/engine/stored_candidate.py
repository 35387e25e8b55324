"""A candidate made again from its record and the store, and from nothing else; every digest is checked first."""

from __future__ import annotations

from itertools import islice

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import delta_between
from securebench.errors import FailureReason, IntegrityError
from securebench.evidence.contents import ContentsCheck, patch_capture
from securebench.families.base import CandidateKind
from securebench.records.shape import RecordShape

PRODUCTION = frozenset(
    {
        FailureReason.PRODUCER_TIMEOUT,
        FailureReason.PRODUCER_FAILED,
        FailureReason.PRODUCER_OUTPUT_LIMIT,
        FailureReason.PRODUCER_MEMORY_LIMIT,
        FailureReason.BUDGET_EXHAUSTED,
    }
)
"""Reasons that producing gives and verifying does not. What was produced until then is recorded, and was not judged."""

_FIELDS = {
    CandidateKind.TEXT: "candidate_text",
    CandidateKind.CODE: "candidate_text",
    CandidateKind.PATCH: "candidate_patch",
    CandidateKind.WORKSPACE: "candidate_workspace",
}
_NAMED = 3


def not_judged(record: RecordShape) -> str | None:
    """Why this attempt never came before a verifier; None where it did, or where only the host kept it from that."""
    if record.failure_reason in PRODUCTION:
        return f"producing failed ({record.failure_reason}), which stays so"
    if all(getattr(record, field) is None for field in _FIELDS.values()):
        return "nothing was produced"
    return None


class Rebuilding:
    """Makes candidates of one run again. Not for several threads at once."""

    def __init__(self, store: CandidateStore) -> None:
        self._store = store
        self._contents = ContentsCheck(store)

    def candidate(self, record: RecordShape, kind: CandidateKind) -> CandidateArtifact:
        """Raises IntegrityError where what is recorded or stored is not what was judged, StoreError."""
        problems = list(islice(self._contents.problems(record.model_copy(update={"evidence": {}})), _NAMED))
        if problems:
            raise IntegrityError("; ".join(problems))
        if getattr(record, _FIELDS[kind]) is None:
            raise IntegrityError(f"the task collects a {kind} now, and the record holds none")
        if kind is CandidateKind.WORKSPACE:
            return self._workspace(record, kind)
        if kind is CandidateKind.PATCH:
            return self._patch(record, kind)
        return CandidateArtifact(record.task_id, kind, text=record.candidate_text)

    def _workspace(self, record: RecordShape, kind: CandidateKind) -> CandidateArtifact:
        tree = self._store.load(record.candidate_workspace or "")
        return CandidateArtifact(record.task_id, kind, workspace=tree.digest, workspace_bytes=tree.total_bytes)

    def _patch(self, record: RecordShape, kind: CandidateKind) -> CandidateArtifact:
        """A patch that was taken from a repository is the difference of two trees; its text only shows it."""
        capture = patch_capture(record)
        if capture is None:
            return CandidateArtifact(record.task_id, kind, patch=record.candidate_patch)
        delta = delta_between(self._store.load(capture["pristine"]), self._store.load(capture["tree"]))
        return CandidateArtifact(record.task_id, kind, patch=record.candidate_patch, delta=delta)
