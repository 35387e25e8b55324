"""What a harness gets and gives. A harness is handed the agent's payload and view; it never sees a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError
from securebench.families.base import CandidateKind
from securebench.resources import ResourceView


@dataclass(frozen=True, slots=True)
class ProducerRequest:
    """All a producer may know about one attempt."""

    task_id: str
    attempt: int
    kind: CandidateKind
    payload: Mapping[str, Any]
    view: ResourceView
    environment: TaskEnvironment
    store: CandidateStore  # where what the agent leaves behind is captured
    sample: bytes | None = None  # what was produced elsewhere, as a line of JSON
    line: int | None = None  # where that stood in its file
    on_output: Callable[[str, bytes], None] | None = None
    on_command: Callable[[tuple[str, ...]], Awaitable[None]] | None = None  # the agent starts when it returns
    on_progress: Callable[[str, int, int], None] | None = None  # what is being read, entries and bytes so far


@dataclass(frozen=True, slots=True)
class Production:
    """What came of it. A failure does not lose the candidate: both are recorded."""

    candidate: CandidateArtifact | None
    failure: CandidateError | None = None
    fault: str | None = None  # of the host or a provider, after the agent had started: nobody's score
    stdout: str = ""
    stderr: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    usage: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # of models
    evidence: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))  # files by name
    voucher: Mapping[str, Any] | None = None  # the word of the node that produced it


class HarnessProducer(Protocol):
    """Produces a candidate. Raises InfrastructureError where the host, not the agent, failed."""

    async def produce(self, request: ProducerRequest) -> Production: ...

    def memory(self, environment: TaskEnvironment) -> int:
        """Bytes that one attempt at such a task may use on this host."""
        ...
