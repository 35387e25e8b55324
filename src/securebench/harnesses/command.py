"""The `command` harness: a fixed command in a fresh sandbox, its output or one file as the candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from securebench._canonical import digest_value
from securebench.harness_schema import CommandConfig
from securebench.harnesses.agent import Invocation
from securebench.harnesses.base import ProducerRequest
from securebench.harnesses.trajectory import Step


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """Runs `harness.config.command`."""

    config: CommandConfig
    name: str = "command"

    @property
    def task_file(self) -> PurePosixPath:
        return PurePosixPath(self.config.task_file)

    @property
    def timeout_seconds(self) -> float | None:
        return self.config.timeout_seconds

    @property
    def memory(self) -> int | None:
        return None

    def invocation(self, request: ProducerRequest, models: Mapping[str, str]) -> Invocation:  # noqa: ARG002 — the protocol's shape
        command, path = self.config.command, self.config.artifact_path
        return Invocation(
            argv=("sh", "-lc", command) if isinstance(command, str) else command,
            artifact=None if path is None else PurePosixPath(path),
        )

    def steps(self, output: bytes) -> Sequence[Step]:  # noqa: ARG002 — the protocol's shape
        return ()

    def describe(self, request: ProducerRequest) -> Mapping[str, Any]:  # noqa: ARG002 — the protocol's shape
        command = self.config.command
        return {"command": digest_value(command if isinstance(command, str) else list(command))}
