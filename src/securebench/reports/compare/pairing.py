"""Which tasks two runs have in common, and what each made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from securebench.reports.rows import Row
from securebench.reports.runs import Run


@dataclass(frozen=True, slots=True)
class TaskScore:
    """What the judged attempts at one task came to."""

    attempts: int
    passed: int
    total: float  # of the scores

    @property
    def mean(self) -> float:
        return self.total / self.attempts

    @property
    def share(self) -> float:
        """Of attempts that passed."""
        return self.passed / self.attempts


@dataclass(frozen=True, slots=True)
class Pair:
    """One task that both runs were judged on."""

    task_id: str
    family: str
    first: TaskScore
    second: TaskScore

    @property
    def difference(self) -> float:
        """How much more the second scored; sums of the same parts in another order are the same."""
        return round(self.second.mean - self.first.mean, 12)

    @property
    def gained(self) -> bool:
        """Whether the second passes it more often."""
        return self.second.share > self.first.share

    @property
    def flipped(self) -> bool:
        """Whether one passed it, in more than half of its attempts, and the other did not."""
        return (self.first.share > 0.5) != (self.second.share > 0.5)


@dataclass(frozen=True, slots=True)
class Pairing:
    """The tasks both were judged on, in the first plan's order, and how many are left out and why."""

    pairs: tuple[Pair, ...]
    only_first: int  # planned in one alone
    only_second: int
    changed: int  # of the same id, but of another row
    unjudged: int  # planned in both, and one of them has no verdict on it

    @property
    def left_out(self) -> int:
        return self.only_first + self.only_second + self.changed + self.unjudged


def pair_up(first: Run, second: Run, *, by_id: bool = False) -> Pairing:
    """A task is the same where its id and the digest of its row are, which say nothing across packs; with `by_id`,
    where its id is."""
    before, after = task_scores(first.rows), task_scores(second.rows)
    pairs, changed, unjudged = [], 0, 0
    for task in first.plan.tasks:
        other = second.plan.by_id.get(task.id)
        if other is None:
            continue
        if other.digest != task.digest and not by_id:
            changed += 1
        elif task.id in before and task.id in after:
            pairs.append(Pair(task.id, task.task_type, before[task.id], after[task.id]))
        else:
            unjudged += 1
    shared = sum(task.id in second.plan.by_id for task in first.plan.tasks)
    return Pairing(tuple(pairs), len(first.plan.tasks) - shared, len(second.plan.tasks) - shared, changed, unjudged)


def task_scores(rows: Sequence[Row]) -> Mapping[str, TaskScore]:
    """By task, of those with a verdict."""
    found: dict[str, tuple[int, int, float]] = {}
    for row in rows:
        if row.judged:
            attempts, passed, total = found.get(row.task_id, (0, 0, 0.0))
            found[row.task_id] = attempts + 1, passed + bool(row.passed), total + (row.score or 0.0)
    return {task: TaskScore(*counts) for task, counts in found.items()}
