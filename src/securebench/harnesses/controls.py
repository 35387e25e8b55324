"""Control agents: they do no work, need no sandbox, and must not score. `null`, `echo`, `constant`."""

from __future__ import annotations

from securebench import _json
from securebench.candidates.extraction import artifact_for
from securebench.families.base import CandidateKind
from securebench.harnesses.base import ProducerRequest, Production


class ControlProducer:
    """Gives the same kind of non-answer to every task."""

    def __init__(self, kind: str, response: str | None = None) -> None:
        self.kind = kind
        self.response = response

    async def produce(self, request: ProducerRequest) -> Production:
        if request.kind is CandidateKind.WORKSPACE:
            return Production(candidate=None, metadata={"harness": self.kind})
        candidate = artifact_for(request.task_id, request.kind, self._text(request), self.kind)
        return Production(candidate=candidate, metadata={"harness": self.kind})

    def _text(self, request: ProducerRequest) -> str:
        if self.response is not None:
            return self.response
        if self.kind == "echo":
            values = request.payload["input"].values()
            return "\n".join(value if isinstance(value, str) else _json.dumps(value) for value in values)
        return ""
