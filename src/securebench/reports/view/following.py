"""A run that is under way, read from its journal as that grows; from its records where there is no journal."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path, PurePosixPath
from typing import Any

from securebench import _json
from securebench._fs import UnsafeEntry, open_beneath, open_directory
from securebench._text import one_line
from securebench.progress import Event, ProgressEvent
from securebench.records.events import EVENTS_FILE
from securebench.records.store import RECORDS_FILE
from securebench.reports._values import number, share, text, whole
from securebench.run_state import RunState

STEP = 2**20  # bytes that are read at once
_LONGEST = 2**20  # of a line; longer ones are passed over
_LAST = 12
_UNDER_WAY = 12
_NAME = 120
_STATUSES = frozenset(("passed", "failed", "pending", "error"))


class Tail:
    """The complete lines of a file that grows. A file that was replaced or cut is read from its beginning."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._offset = 0
        self._file: tuple[int, int] | None = None
        self._rest = b""

    def read(self) -> tuple[list[bytes], bool]:
        """The next lines, and whether there are more already. Nothing where there is no such file, or none that is
        plain."""
        try:
            with open_directory(self._directory) as root, open_beneath(root, PurePosixPath(self._name)) as descriptor:
                status = os.fstat(descriptor)
                if self._file != (status.st_dev, status.st_ino) or status.st_size < self._offset:
                    self._file, self._offset, self._rest = (status.st_dev, status.st_ino), 0, b""
                data = os.pread(descriptor, STEP, self._offset)
        except (OSError, UnsafeEntry):
            return [], False
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST:
            self._rest = b"\0"  # the end of that line will be no JSON
        return lines, self._offset < status.st_size


class Follower:
    """What is known of one run."""

    def __init__(self, directory: Path) -> None:
        journal = os.path.lexists(directory / EVENTS_FILE)
        self._tail = Tail(directory, EVENTS_FILE if journal else RECORDS_FILE)
        self._read = self._event if journal else self._record
        self._now = 0.0
        self._state = RunState(lambda: self._now)
        self._last: deque[dict[str, Any]] = deque(maxlen=_LAST)
        self._score: float | None = None
        self.done = False

    def catch_up(self) -> bool:
        """Read what was added, a piece of it; whether there is more already."""
        lines, more = self._tail.read()
        for line in lines:
            try:
                value = _json.loads(line)
            except _json.JsonError:
                continue
            if isinstance(value, dict):
                self._read(value)
        return more

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        state, self._now = self._state, max(self._now, time.time() if not self.done else self._now)
        under_way = state.longest(_UNDER_WAY)
        return {
            "planned": state.planned,
            "done": state.done,
            "statuses": dict(state.by_status),
            "rate": state.rate(),
            "left": state.left(),
            "tokens": state.tokens,
            "cost": state.cost,
            "running": len(state.running),
            "under_way": [
                {"name": f"{one_line(task, _NAME)} #{attempt}", "phase": one.phase, "since": self._now - one.since}
                for (task, attempt), one in under_way
            ],
            "last": list(reversed(self._last)),
            "finished": self.done,
            "score": self._score if self.done else None,
        }

    def _event(self, value: dict[str, Any]) -> None:
        try:
            event = Event(text(value.get("event")))
        except ValueError:
            return
        self._now = max(self._now, number(value.get("time")) or 0.0)
        self.done = event is Event.RUN_DONE
        self._score = share(value.get("score"))
        data = self._data(event, value)
        if data is not None:
            key = text(value.get("task_id"), 4096), whole(value.get("attempt")) or 0
            self._see(ProgressEvent(event, *key, data, self._now))

    def _data(self, event: Event, value: dict[str, Any]) -> dict[str, Any] | None:
        """What a display needs of it; None for an event without that."""
        if event is Event.RUN_START:
            numbers = {name: whole(value.get(name)) for name in ("planned", "done_before")}
            return None if None in numbers.values() else numbers
        if event is Event.TASK_DONE:
            status = value.get("status")
            return self._ended(status, value, value.get("tokens"), value.get("cost_usd"))
        return {}

    def _ended(self, status: Any, value: dict[str, Any], tokens: Any, cost: Any) -> dict[str, Any] | None:
        if not isinstance(status, str) or status not in _STATUSES:
            return None
        reason = text(value.get("failure_reason"))
        return {"status": status, "failure_reason": reason, "tokens": whole(tokens), "cost_usd": number(cost)}

    def _record(self, value: dict[str, Any]) -> None:
        data = self._ended(value.get("verification_status"), value, None, value.get("cost"))
        if data is not None:
            key = text(value.get("task_id"), 4096), whole(value.get("attempt")) or 0
            self._see(ProgressEvent(Event.TASK_DONE, *key, data, time.time()))

    def _see(self, event: ProgressEvent) -> None:
        self._state.see(event)
        if event.event is Event.TASK_DONE:
            told = " ".join(filter(None, (event.data["status"], event.data["failure_reason"])))
            name = f"{one_line(event.task_id or '', _NAME)} #{event.attempt}"
            self._last.append({"name": name, "status": event.data["status"], "told": one_line(told, _NAME)})
