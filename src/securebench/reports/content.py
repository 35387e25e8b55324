"""What a report is made of: everything it says about one run, before it is a page, a summary or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securebench.records.plan import PlannedTask
from securebench.reports.rows import Row, difficulty_of
from securebench.reports.runs import Run
from securebench.reports.scores import Grouping, Score, estimate_json, groupings, score_of
from securebench.reports.spreads import Spread, seconds_of, spreads, tokens_of
from securebench.reports.statistics import (
    Estimate,
    Interval,
    mean_pass_at_k,
    mean_pass_hat_k,
    score_bounds,
)

MISSING = "missing"
_MISSING = 1000  # attempts without a record that a task lists behind its last one: a plan can name millions
_MOST_K = 1000


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task with its attempts, in order; an attempt without a record is None."""

    task: PlannedTask
    attempts: tuple[Row | None, ...]

    @property
    def rows(self) -> list[Row]:
        return [row for row in self.attempts if row is not None]

    @property
    def statuses(self) -> list[str]:
        return [MISSING if row is None else row.status for row in self.attempts]

    @property
    def score(self) -> float | None:
        known = [row.score for row in self.rows if row.score is not None]
        return sum(known) / len(known) if known else None

    @property
    def difficulty(self) -> str | None:
        return difficulty_of(self.task.tags)

    @property
    def reasons(self) -> list[str]:
        """Why attempts did not pass, each reason once."""
        return list(dict.fromkeys(row.failure_reason for row in self.rows if row.failure_reason))

    @property
    def seconds(self) -> float | None:
        return _mean([seconds_of(row) for row in self.rows])

    @property
    def tokens(self) -> float | None:
        return _mean([tokens_of(row) for row in self.rows])

    @property
    def cost(self) -> float | None:
        return _mean([row.cost_usd for row in self.rows])

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.task.id,
            "family": self.task.task_type,
            "tags": list(self.task.tags),
            "difficulty": self.difficulty,
            "score": self.score,
            "statuses": self.statuses,
            "failure_reasons": self.reasons,
            "mean_seconds": self.seconds,
            "mean_tokens": self.tokens,
            "mean_cost_usd": self.cost,
        }


@dataclass(frozen=True, slots=True)
class Content:
    """A run and what follows from its rows. `passes` are pass@k and pass^k by k, with several attempts a task;
    `bounds` say how far verdicts that are missing could move the score, where any is."""

    run: Run
    whole: Score
    bounds: Interval | None
    passes: Mapping[int, tuple[Estimate, Estimate]]
    groupings: tuple[Grouping, ...]
    spreads: tuple[Spread, ...]
    reasons: tuple[tuple[str, int], ...]
    tasks: tuple[TaskLine, ...]

    @property
    def models(self) -> list[str]:
        """Names of the models that records say were asked, the most asked first."""
        return [name for name, _ in Counter(row.model for row in self.run.rows if row.model).most_common()]

    def as_json(self) -> dict[str, Any]:
        run = self.run
        summary = {name: value for name, value in run.summary.as_json().items() if name != "wall_seconds"}
        return {
            "label": run.label,
            "seal": run.seal_status,
            "models": self.models,
            "plan": run.plan.model_dump(mode="json", exclude={"tasks"}),
            "verification": run.verification.as_json(),
            **estimate_json(self.whole.estimate),
            "bounds": None if self.bounds is None else {"low": self.bounds.low, "high": self.bounds.high},
            "pass_at_k": {str(k): estimate_json(one) for k, (one, _) in self.passes.items()},
            "pass_hat_k": {str(k): estimate_json(all_) for k, (_, all_) in self.passes.items()},
            "summary": summary,
            "groupings": [one.as_json() for one in self.groupings],
            "spreads": [one.as_json() for one in self.spreads],
            "failure_reasons": dict(self.reasons),
            "tasks": [line.as_json() for line in self.tasks],
        }


def content_of(run: Run) -> Content:
    """All numbers of a run's report."""
    attempts = run.attempts()
    whole = score_of(run.label, run.rows)
    judged, unjudged = whole.judged, run.plan.total - whole.judged
    total = sum(row.score or 0.0 for row in run.rows if row.judged)
    return Content(
        run,
        whole,
        score_bounds(total, judged, unjudged) if unjudged > 0 else None,
        _passes(attempts, min((run.plan.attempts_of(task) for task in run.plan.tasks), default=0)),
        groupings(run.rows),
        spreads(run.rows),
        tuple(Counter(row.failure_reason for row in run.rows if row.failure_reason).most_common()),
        tuple(_line(task, attempts[task.id], run.plan.attempts_of(task)) for task in run.plan.tasks),
    )


def _line(task: PlannedTask, rows: tuple[Row, ...], planned: int) -> TaskLine:
    by_number = {row.attempt: row for row in rows}
    last = min(planned, max(by_number, default=0) + _MISSING)
    return TaskLine(task, tuple(by_number.get(number) for number in range(1, last + 1)))


def _passes(attempts: Mapping[str, tuple[Row, ...]], planned: int) -> dict[int, tuple[Estimate, Estimate]]:
    """For every k up to the attempts that were planned for all tasks, over tasks with so many that were judged."""
    tasks = [(sum(row.judged for row in rows), sum(row.passed is True for row in rows)) for rows in attempts.values()]
    groups = [(judged, passed, count) for (judged, passed), count in Counter(tasks).items()]
    most = min(_MOST_K, planned, max((judged for judged, _, _ in groups), default=0))
    if most <= 1:
        return {}
    found = {k: (mean_pass_at_k(groups, k), mean_pass_hat_k(groups, k)) for k in range(1, most + 1)}
    return {k: (one, all_) for k, (one, all_) in found.items() if one is not None and all_ is not None}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
