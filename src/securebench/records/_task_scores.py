"""Scores by task, as small as they can be kept for what is said about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from securebench._statistics import Estimate, clustered_mean, mean_pass_at_k, variance

_Task = tuple[int, int, float, float]  # judged attempts, passed ones, sum of scores, sum of their squares


class TaskScores:
    """With one attempt per task, tasks with the same outcome are one entry; with several, every task is one."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._tasks: dict[str, _Task] = {}
        self._alone: Counter[_Task] = Counter()

    def add(self, task_id: str, passed: bool, score: float) -> None:
        if self._attempts == 1:
            self._alone[1, int(passed), score, score * score] += 1
            return
        count, passes, total, squares = self._tasks.get(task_id, (0, 0, 0.0, 0.0))
        self._tasks[task_id] = (count + 1, passes + passed, total + score, squares + score * score)

    def estimate(self) -> Estimate | None:
        """The mean over attempts, with what it may be off by."""
        return clustered_mean((count, total, weight) for (count, _, total, _), weight in self._grouped())

    def pass_at_k(self) -> dict[str, float]:
        """For every k up to the attempts per task, over tasks with that many judged; nothing with one attempt."""
        if self._attempts == 1:
            return {}
        groups = [(count, passes, weight) for (count, passes, _, _), weight in self._grouped()]
        found = {str(k): mean_pass_at_k(groups, k) for k in range(1, self._attempts + 1)}
        return {k: value for k, value in found.items() if value is not None}

    def mean_variance(self) -> float | None:
        """How much attempts at one task differ, on average over tasks with several judged ones."""
        pairs = [(variance(count, total, squares), weight) for (count, _, total, squares), weight in self._grouped()]
        known = [(value, weight) for value, weight in pairs if value is not None]
        if not known:
            return None
        return math.fsum(value * weight for value, weight in known) / sum(weight for _, weight in known)

    def _grouped(self) -> Iterator[tuple[_Task, int]]:
        return iter((self._alone if self._attempts == 1 else Counter(self._tasks.values())).items())
