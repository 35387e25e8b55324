"""`SecureBenchTask`: one compiled task and what each component may be told about it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securebench.answers.instructions import answer_instructions
from securebench.environment import TaskEnvironment
from securebench.resources import Component, ResourceBundle, ResourceView, Visibility


@dataclass(frozen=True, slots=True)
class SecureBenchTask:
    """A task with its lanes. Only the engine holds one; everything else gets a payload or a view."""

    id: str
    benchmark_id: str
    benchmark_version: int
    task_type: str
    candidate_kind: str
    environment: TaskEnvironment
    row_digest: str
    resources: ResourceBundle
    _metadata: Mapping[str, Any]

    def view_for(self, component: Component) -> ResourceView:
        return self.resources.view(component)

    def agent_payload(self) -> dict[str, Any]:
        """All that a harness may know: the public lane."""
        return self._payload(Component.AGENT)

    def public_payload(self) -> dict[str, Any]:
        """Another name for `agent_payload`."""
        return self.agent_payload()

    def evaluation_payload(self) -> dict[str, Any]:
        """What the test sandbox may know: public and evaluation inputs."""
        return self._payload(Component.TEST_SANDBOX)

    def hidden_payload(self) -> dict[str, Any]:
        """What the evaluator may know: public and hidden."""
        return self._payload(Component.EVALUATOR)

    def resource_summary(self) -> dict[str, Any]:
        """Every resource with its lane; private values redacted."""
        return self.resources.summary()

    def _payload(self, component: Component) -> dict[str, Any]:
        view = self.view_for(component)
        environment = self.environment
        public = {r.name: r.value for r in view if r.visibility is Visibility.PUBLIC and not r.is_asset}
        payload: dict[str, Any] = {
            "task_id": self.id,
            "benchmark_id": self.benchmark_id,
            "task_type": self.task_type,
            "input": public,
            "assets": [
                {"path": str(file.mount), "read_only": file.read_only}
                for resource in view
                if resource.is_asset
                for file in resource.files
            ],
            "environment": {
                "image": environment.image,
                "workdir": environment.workdir,
                "timeout_seconds": environment.timeout_seconds,
                "allowed_domains": list(environment.allowed_domains),
            },
            "candidate": {
                "kind": self.candidate_kind,
                "instructions": answer_instructions(self.task_type, public),
            },
            "metadata": copy.deepcopy(dict(self._metadata)),
        }
        for lane in (Visibility.EVALUATION_INPUTS, Visibility.HIDDEN):
            private = {r.name: r.value for r in view if r.visibility is lane}
            if private:
                payload[str(lane)] = private
        return payload
