"""Scores by task, as small as they can be kept for what is said about them."""

from __future__ import annotations

import math
from collections import Counter

from securebench._statistics.attempts import mean_pass_at
from securebench._statistics.clusters import Estimate, clustered_mean, variance

MAX_K = 1000
_Task = tuple[int, int, float, float]  # judged attempts, passed ones, sum of scores, sum of their squares


class TaskScores:
    """What the judged attempts of every task came to."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}
        self._same: dict[_Task, _Task] = {}  # one object for all tasks that came to the same

    def add(self, task_id: str, passed: bool, score: float) -> None:
        count, passes, total, squares = self._tasks.get(task_id, (0, 0, 0.0, 0.0))
        now = (count + 1, passes + passed, total + score, squares + score * score)
        self._tasks[task_id] = self._same.setdefault(now, now)

    def estimate(self) -> Estimate | None:
        """The mean over attempts, with what it may be off by."""
        return clustered_mean((count, total, weight) for (count, _, total, _), weight in self._grouped().items())

    def pass_at_k(self, least: int, most: int) -> dict[str, float]:
        """For every k up to the attempts that every task was to have, over tasks with that many judged; nothing where
        no task has more than one."""
        if most == 1:
            return {}
        groups = [(count, passes, weight) for (count, passes, _, _), weight in self._grouped().items()]
        return {str(k): value for k, value in mean_pass_at(groups, min(least, MAX_K)).items()}

    def mean_variance(self) -> float | None:
        """How much attempts at one task differ, on average over tasks with several judged ones."""
        groups = self._grouped().items()
        pairs = [(variance(count, total, squares), weight) for (count, _, total, squares), weight in groups]
        known = [(value, weight) for value, weight in pairs if value is not None]
        if not known:
            return None
        return math.fsum(value * weight for value, weight in known) / sum(weight for _, weight in known)

    def _grouped(self) -> Counter[_Task]:
        return Counter(self._tasks.values())
