"""What agents print, as whole lines that say whose they are, also with many agents at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from securebench.cli._text import attempt_name, visible
from securebench.progress import Event, Progress, ProgressEvent

TRACE_NAME = "agent-trace.log"
_LONGEST = 16 * 1024
_MOST = 64 * 1024 * 1024  # characters of a stream that are shown: the marks of empty lines are many times their size

_Key = tuple[str | None, int | None, str]


class AgentLines:
    """Puts pieces of output together to lines; what an agent leaves unfinished comes when it is done."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._waiting: dict[_Key, str] = {}
        self._room: dict[_Key, int] = {}

    def __call__(self, event: ProgressEvent) -> None:
        if event.event is Event.PRODUCER_OUTPUT:
            key = (event.task_id, event.attempt, str(event.data["stream"]))
            *whole, rest = (self._waiting.pop(key, "") + event.data["text"]).split("\n")
            if len(rest) > _LONGEST:
                whole, rest = [*whole, rest], ""
            self._lines(key, whole)
            if rest:
                self._waiting[key] = rest
        elif event.event is Event.PRODUCER_DONE:
            for key in [key for key in self._waiting if key[:2] == (event.task_id, event.attempt)]:
                self._lines(key, [self._waiting.pop(key)])
            for key in [key for key in self._room if key[:2] == (event.task_id, event.attempt)]:
                del self._room[key]

    def _lines(self, key: _Key, lines: list[str]) -> None:
        mark = f"{attempt_name(key[0], key[1])} │ "
        room, shown = self._room.get(key, _MOST), []
        for line in lines:
            if room <= 0:
                break
            shown.append(mark + visible(line))
            room -= len(shown[-1]) + 1
            if room <= 0:
                shown.append(f"{mark}[…cut: too much output to show]")
        self._room[key] = room
        if shown:
            self._show("\n".join(shown))


@contextmanager
def agent_trace(directory: Path, listener: Progress) -> Iterator[Progress]:
    """The listener, which also writes every line of every agent to `agent-trace.log` in the run's directory."""
    with _TraceFile(directory / TRACE_NAME) as file:
        lines = AgentLines(file.write)

        def listen(event: ProgressEvent) -> None:
            listener(event)
            lines(event)

        yield listen


class _TraceFile:
    """Opened when there is something to write: before that the run's directory need not exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> _TraceFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, text: str) -> None:
        if self._file is None:
            # A link in a stranger's run directory must not lead agents' words elsewhere, nor a FIFO hold us up.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._path, flags, 0o644), "a", encoding="utf-8")
        self._file.write(text + "\n")
        self._file.flush()
