"""The runs beneath a directory, as their own files tell of them in short. Nothing is checked: that is the report's.

Links are not followed, and neither depth nor number is without end."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securebench import _json
from securebench.progress import Event
from securebench.records.events import EVENTS_FILE, MAX_EVENT
from securebench.records.files import MARKS
from securebench.records.seal import SEAL_FILE
from securebench.records.store import RECORDS_FILE
from securebench.records.summary import SUMMARY_FILE
from securebench.reports._values import mapping, number, share, text, whole
from securebench.reports.under_way import is_held
from securebench.reports.view.files import count_lines, modified, problem, read_part, read_small, signature

MOST_RUNS = 2000
_MOST_DIRECTORIES = 20_000
_DEPTH = 8
_SUMMARY = 4 * 2**20
_NAME = 200
_FRESH = 300.0  # seconds since a run elsewhere, whose lock we do not see, was last written to


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in the list. `state` is sealed, finished, running or stopped, or refused with a `problem`."""

    id: str  # made of its path: what addresses name it by
    path: str  # beneath the directory that is shown
    run_id: str
    benchmark: str
    harness: str
    planned: int
    recorded: int
    score: float | None
    low: float | None
    high: float | None
    cost: float | None
    state: str
    modified: float
    problem: str = ""


class Library:
    """One directory of runs. What was read of a run is kept until one of its files changes."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.time) -> None:
        self.root = root
        self._clock = clock
        self._kept: dict[str, tuple[object, Listed]] = {}
        self._lock = threading.Lock()

    def runs(self) -> list[Listed]:
        """Those that are there now, the last written first."""
        found = {run_id(path): path for path in self._beneath()}
        with self._lock:
            listed = [self._listed(key, path) for key, path in found.items()]
            self._kept = {key: kept for key, kept in self._kept.items() if key in found}
        return sorted(listed, key=lambda one: (-one.modified, one.path))

    def find(self, key: str) -> tuple[Path, str] | None:
        """The directory of a run and why it is not opened, empty where it is. An address is only ever looked up."""
        for path in self._beneath():
            if run_id(path) == key:
                return self.root / path, problem(self.root / path) or ""
        return None

    def listed(self, key: str) -> Listed | None:
        with self._lock:
            return next((self._listed(key, path) for path in self._beneath() if run_id(path) == key), None)

    def _beneath(self) -> Iterator[str]:
        """Paths of run directories, `.` for the root itself."""
        waiting, seen, found = [("", 0)], 0, 0
        while waiting and seen < _MOST_DIRECTORIES and found < MOST_RUNS:
            path, depth = waiting.pop()
            seen += 1
            try:
                with os.scandir(self.root / path) as entries:
                    names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            except OSError:
                continue
            if any(name in MARKS for name, _ in names):
                found += 1
                yield path or "."
            elif depth < _DEPTH:
                waiting += [(os.path.join(path, name), depth + 1) for name, is_directory in names if is_directory]  # noqa: PTH118 - text beneath the root

    def _listed(self, key: str, path: str) -> Listed:
        directory = self.root / path
        mark = signature(directory)
        kept = self._kept.get(key)
        if kept is None or kept[0] != mark or kept[1].state == "running":
            kept = mark, self._read(key, path, directory)
            self._kept[key] = kept
        return kept[1]

    def _read(self, key: str, path: str, directory: Path) -> Listed:
        why = problem(directory)
        told = {} if why else _told(directory)
        interval = mapping(told.get("interval"))
        when = modified(directory)
        return Listed(
            id=key,
            path=path,
            run_id=text(told.get("run_id"), _NAME) or directory.name,
            benchmark=text(told.get("benchmark_id"), _NAME),
            harness=text(told.get("harness"), _NAME),
            planned=whole(told.get("planned")) or 0,
            recorded=whole(told.get("total")) or (0 if why else count_lines(directory, RECORDS_FILE)),
            score=share(told.get("score")),
            low=share(interval.get("low")),
            high=share(interval.get("high")),
            cost=number(told.get("cost_usd")),
            state="refused" if why else _state(directory, self._clock() - when),
            modified=when,
            problem=why or "",
        )


def run_id(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:24]


def _told(directory: Path) -> dict[str, Any]:
    """The summary; of a run that has none yet, what its journal begins with."""
    data = read_small(directory, SUMMARY_FILE, _SUMMARY)
    if data is None:
        data = read_part(directory, EVENTS_FILE, MAX_EVENT).partition(b"\n")[0]
    try:
        value = _json.loads(data)
    except _json.JsonError:
        return {}
    return value if isinstance(value, dict) else {}


def _state(directory: Path, age: float) -> str:
    if os.path.lexists(directory / SEAL_FILE):
        return "sealed"
    last = read_part(directory, EVENTS_FILE, 2 * MAX_EVENT, end=True).splitlines()[-1:]
    if last and last[0].startswith(b'{"event":"%s"' % Event.RUN_DONE.value.encode()):
        return "finished"
    return "running" if age < _FRESH or is_held(directory) else "stopped"
