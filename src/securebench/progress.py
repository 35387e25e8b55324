"""What happens during a run, as events. The display, the log file and `--progress json` all read these."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class Event(StrEnum):
    RUN_START = "run_start"
    RUN_NOTICE = "run_notice"
    RUN_DONE = "run_done"
    TASK_START = "task_start"
    TASK_DONE = "task_done"
    PRODUCER_START = "producer_start"
    PRODUCER_OUTPUT = "producer_output"
    PRODUCER_DONE = "producer_done"
    AGENT_STARTED = "agent_started"
    SANDBOX_COMMAND = "sandbox_command"
    WORKSPACE_PROGRESS = "workspace_progress"
    VERIFIER_START = "verifier_start"
    VERIFIER_DONE = "verifier_done"
    RECORD_WRITTEN = "record_written"


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One thing that happened. `data` is plain JSON and holds no hidden value."""

    event: Event
    task_id: str | None = None
    attempt: int | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    time: float = field(default_factory=time.time)

    def as_json(self) -> dict[str, Any]:
        place = {"task_id": self.task_id, "attempt": self.attempt} if self.task_id is not None else {}
        return {"event": str(self.event), "time": round(self.time, 3), **place, **self.data}


Progress = Callable[[ProgressEvent], None]


class Unbreakable:
    """A listener that cannot end a run: when it fails (a closed terminal, a full disk), it is not called again."""

    def __init__(self, listener: Progress) -> None:
        self._listener: Progress | None = listener

    def __call__(self, event: ProgressEvent) -> None:
        if self._listener is None:
            return
        try:
            self._listener(event)
        except (OSError, ValueError):
            self._listener = None


def both(first: Progress, second: Progress) -> Progress:
    """One listener that is two."""

    def listen(event: ProgressEvent) -> None:
        first(event)
        second(event)

    return listen


def silent(event: ProgressEvent) -> None:
    """Listens to nothing."""
