"""Every error SecureBench raises, sorted by who has to act on it.

SecureBenchError
├── ConfigError            the operator: a flag, a tester YAML or a file named there is wrong (exit 2)
│   └── PackError          the pack author: manifest, row or asset is wrong (exit 2)
├── CandidateError         the candidate: recorded as `failed`, never retried, never ends a run
│   └── ProducerError      the agent under test: it crashed, ran out of time or flooded its output
├── InfrastructureError    the host: recorded as `error`; the only branch that may be retried (exit 3)
│   ├── SandboxError       a backend could not start, run or clean up
│   ├── JudgeUnfit         a model judge got a response wrong whose verdict is known
│   ├── SandboxUnavailable no backend here gives what was required; carries the remedy
│   └── StoreError         the run directory cannot be written, read or locked
├── QueueFull              the caller of a grader: all places are taken, come back later
└── IntegrityError         evidence that does not check out: never retried (exit 1)

Only `securebench.cli` turns an error into output or an exit code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FailureReason(StrEnum):
    """Why a candidate did not pass, as written to `failure_reason`. Closed: reports group by it."""

    PRODUCER_TIMEOUT = "producer_timeout"
    PRODUCER_FAILED = "producer_failed"
    PRODUCER_OUTPUT_LIMIT = "producer_output_limit"
    PRODUCER_MEMORY_LIMIT = "producer_memory_limit"
    NO_CANDIDATE = "no_candidate"
    CANDIDATE_REFUSED = "candidate_refused"
    CANDIDATE_TOO_LARGE = "candidate_too_large"
    NO_ANSWER = "no_answer"
    MALFORMED_ANSWER = "malformed_answer"
    AMBIGUOUS_ANSWER = "ambiguous_answer"
    WRONG_ANSWER = "wrong_answer"
    WORKER_TIMEOUT = "worker_timeout"  # candidate code did not answer in time
    WORKER_CRASHED = "worker_crashed"  # candidate code ended the process it ran in, or never loaded
    WORKER_OUTPUT_LIMIT = "worker_output_limit"
    WORKER_MEMORY_LIMIT = "worker_memory_limit"
    PROTOCOL_VIOLATION = "protocol_violation"  # bytes out of turn, out of bounds or out of form
    INTERNAL_ERROR = "internal_error"  # our own code failed on candidate bytes; never a way out of the score
    TESTS_FAILED = "tests_failed"
    TAMPERING = "tampering"
    BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with one place of one file, in words its author can act on."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


def os_reason(error: OSError) -> str:
    """`cannot be read: no such file or directory`, without the path, which the caller names."""
    return f"cannot be read: {(error.strerror or os.strerror(error.errno or 0)).lower()}"


class SecureBenchError(Exception):
    """Root of everything SecureBench raises on purpose."""


class ConfigError(SecureBenchError):
    """The operator has to change a flag or a file. Carries every problem found, not just the first."""

    def __init__(self, problems: str | Iterable[Problem], suppressed: int = 0) -> None:
        if isinstance(problems, str):
            self.problems: tuple[Problem, ...] = ()
            super().__init__(problems)
        else:
            self.problems = tuple(sorted(problems))
            more = [f"… and {suppressed} more problems"] if suppressed else []
            super().__init__("\n".join([*map(str, self.problems), *more]))


class PackError(ConfigError):
    """The pack author has to change the manifest, a row or an asset."""


class CandidateError(SecureBenchError):
    """The candidate cannot be accepted. Its attempt is `failed` with this reason and stays counted."""

    def __init__(self, reason: FailureReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ProducerError(CandidateError):
    """The agent under test did not finish as it had to; what it produced so far is still recorded."""


class InfrastructureError(SecureBenchError):
    """The host failed, not the candidate. Recorded as `error`, may be retried a bounded number of times."""


class SandboxError(InfrastructureError):
    """A sandbox backend could not start, run or clean up."""


class SandboxUnavailable(InfrastructureError):
    """No usable backend gives the required guarantees on this host; `remedy` says how to get them."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}\n{remedy}")
        self.remedy = remedy


class JudgeUnfit(InfrastructureError):
    """A model judge failed its controls; none of its verdicts on that task counts."""


class StoreError(InfrastructureError):
    """The run directory cannot be created, locked, written or read."""


class QueueFull(SecureBenchError):
    """A grader has no place for another candidate now, and the caller did not want to wait."""


class IntegrityError(SecureBenchError):
    """Stored evidence contradicts itself or the pack. Never retried, never repaired silently."""
