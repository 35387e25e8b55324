"""Simulators for tests, ours and other people's: a producer that says what it is told."""

from __future__ import annotations

from collections.abc import Mapping

from securebench.candidates.extraction import artifact_for
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError
from securebench.harnesses.base import ProducerRequest, Production


class ScriptedProducer:
    """Answers each task with the text, the failure or the exception scripted for it, and remembers what it was told."""

    def __init__(self, script: Mapping[str, str | Exception]) -> None:
        self.script = script
        self.requests: list[ProducerRequest] = []

    def memory(self, environment: TaskEnvironment) -> int:  # noqa: ARG002 — the protocol's shape
        return 0

    async def produce(self, request: ProducerRequest) -> Production:
        self.requests.append(request)
        reply = self.script[request.task_id]
        if isinstance(reply, CandidateError):
            return Production(candidate=None, failure=reply)
        if isinstance(reply, Exception):
            raise reply
        return Production(artifact_for(request.task_id, request.kind, reply, "script"), stdout=reply)
