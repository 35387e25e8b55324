"""What a sandboxed producer has to know of the program it runs. A new agent is a new file that says these things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Protocol

from securebench.harnesses.base import ProducerRequest
from securebench.harnesses.trajectory import Step
from securebench.sandboxes.base import Limits, Mount


@dataclass(frozen=True, slots=True)
class Invocation:
    """One start of the program. `artifact` is the file that becomes the candidate; None means standard output, or what
    became of the working directory, as the family has it."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mounts: tuple[Mount, ...] = ()
    artifact: PurePosixPath | None = None
    prompt: str | None = None  # given on standard input
    output: int = Limits().output  # bytes per stream that are kept; at twice as many it is ended

    @property
    def stdin(self) -> bytes:
        return (self.prompt or "").encode("utf-8", "replace")


class Agent(Protocol):
    """A program that works on tasks inside a sandbox."""

    @property
    def name(self) -> str: ...

    @property
    def task_file(self) -> PurePosixPath:
        """Where in the working directory the task is written down for it."""
        ...

    @property
    def timeout_seconds(self) -> float | None: ...

    @property
    def memory(self) -> int | None:
        """Bytes it needs, where neither the task nor the operator says."""
        ...

    def invocation(self, request: ProducerRequest, models: Mapping[str, str]) -> Invocation:
        """How it is started on this task; `models` are the variables by which it reaches its models."""
        ...

    def steps(self, output: bytes) -> Sequence[Step]:
        """What it did, read from what it printed. Never raises, whatever that is."""
        ...

    def describe(self, request: ProducerRequest) -> Mapping[str, Any]:
        """What decides its behaviour, for the record: version, integrity, model, prompt digest."""
        ...
