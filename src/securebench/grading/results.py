"""What a caller gives and gets: a candidate becomes a sample, the record of its attempt a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from securebench import _json
from securebench.candidates.extraction import MAX_TEXT_BYTES
from securebench.errors import ConfigError, FailureReason, InfrastructureError
from securebench.families.base import CandidateKind
from securebench.harnesses.samples import KEYS, TASK_KEYS, NotASample, Sample, check_kind, read_sample
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Assurance, Status, VerificationResult

Task = str | SecureBenchTask
"""A task of the pack: its id, or the task itself."""
Candidate = str | Mapping[str, Any]
"""An answer, a completion or a patch as text; or an object as it stands in samples files."""


def sample_line(task_id: str, kind: CandidateKind, candidate: Candidate) -> bytes:
    """The candidate as the line of a samples file; what is longer than any candidate may be is cut to where it still
    is too long. Raises ConfigError for what is no candidate of this task."""
    try:
        sample = _sample(task_id, kind, candidate)
        check_kind(sample, kind)
    except NotASample as error:
        raise ConfigError(f"task {task_id}: {f'{error.key}: ' if error.key else ''}{error}") from error
    if sample.task_id != task_id:
        raise ConfigError(f"task {task_id}: the sample is of task {sample.task_id[:200]!r}")
    text = sample.text if sample.text is None else sample.text[: MAX_TEXT_BYTES + 1]
    return _json.dumps({"task_id": task_id, sample.key: text}).encode()


def _sample(task_id: str, kind: CandidateKind, candidate: Candidate) -> Sample:
    if isinstance(candidate, str):
        return Sample(task_id, KEYS.get(kind, ("completion",))[0], candidate)
    if not isinstance(candidate, Mapping):
        raise NotASample("", f"expected text or an object, found {type(candidate).__name__}")
    named = {} if any(key in candidate for key in TASK_KEYS) else {"task_id": task_id}
    return read_sample({**candidate, **named})


def verdict(record: Mapping[str, Any]) -> VerificationResult:
    """The verdict of a record. Raises InfrastructureError where the host or the pack failed, and ConfigError where
    nobody has judged: neither is anybody's verdict, and no reward of 0."""
    status, message = Status(record["verification_status"]), record["failure_message"]
    if status is Status.PENDING:
        missing = message or "it needs a model judge, and none is named; give a tester YAML with one (config, --config)"
        raise ConfigError(f"task {record['task_id']}: {missing}")
    if status is Status.ERROR:
        raise InfrastructureError(f"task {record['task_id']}: {message}")
    reason, assurance = record["failure_reason"], record["assurance"]
    metadata = dict(record["verifier_metadata"]) | ({"message": message} if message else {})
    return VerificationResult(
        task_id=record["task_id"],
        status=status,
        passed=bool(record["passed"]),
        score=record["score"] or 0.0,
        assurance=None if assurance is None else Assurance(assurance),
        failure_reason=None if reason is None else FailureReason(reason),
        stdout=record["verifier_stdout"],
        stderr=record["verifier_stderr"],
        metadata=MappingProxyType(metadata),
        controls=tuple(record["controls"]),
        usage=MappingProxyType(dict(record["usage"])),
    )
