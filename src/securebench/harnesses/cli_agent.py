"""What the agents' command-line tools have in common: an overlay, a prompt, a home of their own, files as answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, ClassVar

from securebench.families.base import CandidateKind
from securebench.harness_schema import ClaudeCodeConfig, CodexConfig
from securebench.harnesses.agent import Invocation
from securebench.harnesses.base import ProducerRequest
from securebench.harnesses.overlays import Overlay
from securebench.harnesses.prompts import ANSWER_FILE, CODE_FILE, Prompt
from securebench.harnesses.trajectory import Step
from securebench.sandboxes.base import MIB, Root, Scratch, root_of

HOME = "/securebench-home"
_HOME_SIZE = 512 * MIB
_MEMORY = 4096 * MIB
_OUTPUT = 64 * MIB


class CliAgent(ABC):
    """One tool at one version, with one model and one prompt; the build that fits each root file system."""

    name: ClassVar[str]
    provider: ClassVar[str]

    def __init__(
        self, config: CodexConfig | ClaudeCodeConfig, overlays: Mapping[Root, Overlay], prompt: Prompt
    ) -> None:
        self.overlays, self.prompt = overlays, prompt
        self.model = config.model
        self.memory = _MEMORY
        self.task_file = PurePosixPath(config.task_file)
        self.timeout_seconds = config.timeout_seconds

    @abstractmethod
    def arguments(self, models: Mapping[str, str]) -> tuple[str, ...]:
        """The words after the program's; the prompt comes on standard input."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """What it needs besides its models: where its home is, and what it should leave alone."""

    @abstractmethod
    def steps(self, output: bytes) -> Sequence[Step]:
        """What it did, read from its event stream."""

    def invocation(self, request: ProducerRequest, models: Mapping[str, str]) -> Invocation:
        overlay = self._overlay(request)
        return Invocation(
            argv=(*overlay.program, *self.arguments(models)),
            env={"HOME": HOME, **self.environment()},
            mounts=(overlay.bind, Scratch(HOME, _HOME_SIZE)),
            artifact=artifact_of(request.kind),
            prompt=self.prompt.render(request.payload, request.kind),
            output=_OUTPUT,
        )

    def describe(self, request: ProducerRequest) -> Mapping[str, Any]:
        overlay = self._overlay(request)
        return {
            "version": overlay.version,
            "model": self.model,
            "integrity": dict(overlay.integrity),
            "overlay": overlay.digest,
            "prompt": self.prompt.digest,
        }

    def _overlay(self, request: ProducerRequest) -> Overlay:
        return self.overlays[root_of(request.environment.image)]


def artifact_of(kind: CandidateKind) -> PurePosixPath | None:
    """The file an agent's answer is read from; None where what became of the working directory is the answer."""
    names = {CandidateKind.TEXT: ANSWER_FILE, CandidateKind.CODE: CODE_FILE}
    return PurePosixPath(names[kind]) if kind in names else None
