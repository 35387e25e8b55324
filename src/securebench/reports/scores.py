"""Scores of a run, whole and in parts: by family, difficulty, tag and how verdicts were reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from securebench.reports.rows import Row
from securebench.reports.statistics import CONFIDENCE, Estimate, clustered_mean

STATUSES = ("passed", "failed", "pending", "error")
_LEVELS = ("trivial", "easy", "medium", "hard", "expert")  # in the order people expect
_ASSURANCES = ("pure", "isolated", "shared_process", "judged", "guarded", "unsafe")


@dataclass(frozen=True, slots=True)
class Score:
    """A part of a run: its attempts by status, and the mean over the judged ones with its interval."""

    name: str
    counts: Mapping[str, int]
    estimate: Estimate | None

    @property
    def judged(self) -> int:
        return self.counts["passed"] + self.counts["failed"]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, **estimate_json(self.estimate), "counts": dict(self.counts)}


@dataclass(frozen=True, slots=True)
class Grouping:
    """A run cut one way. `by` says which; a task with several tags is in several parts."""

    by: str
    parts: tuple[Score, ...]

    def as_json(self) -> dict[str, Any]:
        return {"by": self.by, "parts": [part.as_json() for part in self.parts]}


def score_of(name: str, rows: Iterable[Row]) -> Score:
    """The score over these attempts, clustered by task."""
    counts: Counter[str] = Counter()
    tasks: dict[str, tuple[int, float]] = {}
    for row in rows:
        counts[row.status] += 1
        if row.judged:
            number, total = tasks.get(row.task_id, (0, 0.0))
            tasks[row.task_id] = number + 1, total + (row.score or 0.0)
    grouped = Counter(tasks.values())
    estimate = clustered_mean((number, total, weight) for (number, total), weight in grouped.items())
    return Score(name, MappingProxyType({status: counts[status] for status in STATUSES}), estimate)


def groupings(rows: Iterable[Row]) -> tuple[Grouping, ...]:
    """Every way of cutting that makes parts: one with a single part says no more than the whole, unless it is tags."""
    rows = list(rows)
    made = (
        _grouping("family", rows, lambda row: (row.family,)),
        _grouping("difficulty", rows, lambda row: (row.difficulty,) if row.difficulty else (), _LEVELS),
        _grouping("tag", rows, lambda row: [tag for tag in row.tags if not _is_difficulty(tag, row)]),
        _grouping("assurance", rows, lambda row: (row.assurance,) if row.assurance else (), _ASSURANCES),
    )
    return tuple(one for one in made if len(one.parts) > 1 or (one.by == "tag" and one.parts))


def _is_difficulty(tag: str, row: Row) -> bool:
    return row.difficulty is not None and tag in {row.difficulty, f"difficulty:{row.difficulty}"}


def _grouping(
    by: str, rows: Iterable[Row], names: Callable[[Row], Iterable[str]], order: tuple[str, ...] = ()
) -> Grouping:
    found: dict[str, list[Row]] = {}
    for row in rows:
        for name in names(row):
            found.setdefault(name, []).append(row)
    places = {name: place for place, name in enumerate(order)}
    ordered = sorted(found, key=lambda name: (places.get(name, len(places)), name))
    return Grouping(by, tuple(score_of(name, found[name]) for name in ordered))


def estimate_json(estimate: Estimate | None) -> dict[str, Any]:
    """`score`, `interval` and what they rest on."""
    if estimate is None:
        return {"score": None, "interval": None, "tasks": 0, "attempts": 0}
    interval = {"low": estimate.interval.low, "high": estimate.interval.high, "confidence": CONFIDENCE}
    return {"score": estimate.mean, "interval": interval, "tasks": estimate.tasks, "attempts": estimate.attempts}
