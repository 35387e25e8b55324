"""Control agents: they do no work, need no sandbox, and must not score. `null`, `echo`, `constant`.

Where a family collects what became of a workspace, they leave it as it is; `echo` and `constant` answer a `repo_patch`
task with their text in the place of a patch."""

from __future__ import annotations

from securebench import _json
from securebench.candidates.extraction import artifact_for
from securebench.environment import TaskEnvironment
from securebench.families.base import CandidateKind
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.workspace import extracted, open_workspace
from securebench.sandboxes.base import Sandbox


class ControlProducer:
    """Gives the same kind of non-answer to every task."""

    def __init__(self, kind: str, response: str | None = None, sandbox: Sandbox | None = None) -> None:
        self.kind = kind
        self.response = response
        self.sandbox = sandbox  # only asked for the files of images

    def memory(self, environment: TaskEnvironment) -> int:  # noqa: ARG002 — the protocol's shape
        return 0

    async def produce(self, request: ProducerRequest) -> Production:
        if self._leaves_a_workspace(request.kind):
            async with open_workspace(request, self.sandbox) as workspace:
                candidate = workspace.untouched()
        else:
            candidate = artifact_for(request.task_id, request.kind, self._text(request), self.kind)
        return Production(candidate=candidate, metadata={"harness": self.kind} | extracted(candidate))

    def _leaves_a_workspace(self, kind: CandidateKind) -> bool:
        return kind is CandidateKind.WORKSPACE or (kind is CandidateKind.PATCH and self.kind == "null")

    def _text(self, request: ProducerRequest) -> str:
        if self.response is not None:
            return self.response
        if self.kind == "echo":
            values = request.payload["input"].values()
            return "\n".join(value if isinstance(value, str) else _json.dumps(value) for value in values)
        return ""
