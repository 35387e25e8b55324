"""What a verifier gets and gives. Success is one explicit path: `passed` is True only where a verifier says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.dangerous_commands import VerificationPolicy
from securebench.environment import TaskEnvironment
from securebench.errors import FailureReason
from securebench.resources import ResourceView
from securebench.sandboxes.base import Sandbox
from securebench.verifiers.judge.panel import Panel
from securebench.verifiers.shared_files import SharedFiles


class Status(StrEnum):
    """`verification_status` of a record."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"
    ERROR = "error"


class Assurance(StrEnum):
    """How much a verdict can be believed; totals are never mixed across levels without saying so."""

    PURE = "pure"  # text compared by trusted code
    ISOLATED = "isolated"  # candidate code ran, the verdict was computed elsewhere
    SHARED_PROCESS = "shared_process"  # tests ran inside the candidate's process; tamper evidence only
    JUDGED = "judged"  # a model read the response and decided, after its controls held
    GUARDED = "guarded"  # no kernel isolation was available
    UNSAFE = "unsafe"  # the operator switched protection off


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """One verdict. `stdout` and `stderr` are what trusted checkers printed, never the candidate's claim. There is no
    `assurance` where the candidate failed before a verifier came to it."""

    task_id: str
    status: Status
    passed: bool
    score: float
    assurance: Assurance | None
    failure_reason: FailureReason | None = None
    stdout: str = ""
    stderr: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    controls: tuple[Mapping[str, Any], ...] = ()  # what was run beside the tests, what had to come out, and what did
    usage: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if self.passed != (self.status is Status.PASSED):
            raise ValueError(f"verdict contradicts itself: passed={self.passed}, status={self.status}")
        if self.passed and self.failure_reason is not None:
            raise ValueError("a passed verdict cannot have a failure reason")
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"score {self.score} is outside 0…1")
        if self.passed and self.assurance is None:
            raise ValueError("a passed verdict says how much it can be believed")

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, for servers and logs."""
        return {
            "task_id": self.task_id,
            "status": str(self.status),
            "passed": self.passed,
            "score": self.score,
            "assurance": None if self.assurance is None else str(self.assurance),
            "failure_reason": None if self.failure_reason is None else str(self.failure_reason),
            "stdout": self.stdout,
            "stderr": self.stderr,
            "metadata": dict(self.metadata),
            "controls": [dict(control) for control in self.controls],
            "usage": dict(self.usage),
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """All that one verdict may rest on. `evaluator` is the view with the answers; it goes to no other component."""

    task_id: str
    candidate: CandidateArtifact
    evaluator: ResourceView
    tests: ResourceView  # for the test sandbox
    worker: ResourceView  # for the sandbox that runs candidate code
    environment: TaskEnvironment = field(default_factory=TaskEnvironment)
    sandbox: Sandbox | None = None  # None where the run executes nothing
    store: CandidateStore | None = None  # the captured bytes of patches and workspaces
    judge: Panel | None = None  # None where the run names no judge
    policy: VerificationPolicy = field(default_factory=VerificationPolicy)  # what the worker may be given
    seed: bytes = b""  # secret until the run ends; decides orders and names no candidate may guess
    shared: SharedFiles | None = None  # what is the same for many candidates; None where each lays it out for itself


@runtime_checkable
class Remembering(Protocol):
    """A verifier that keeps what it learned about tasks for the other attempts of the same run."""

    def forget(self, store: CandidateStore) -> None:
        """The run with that store is over."""
        ...


class Verifier(Protocol):
    """Judges one candidate."""

    async def verify(self, verification: Verification) -> VerificationResult:
        """Raises InfrastructureError only for faults of the host; whatever the candidate does is a verdict."""
        ...
