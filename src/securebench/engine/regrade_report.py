"""What came of verifying a run's candidates again: every attempt's old and new verdict, and why they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from securebench.engine.stored_run import SeedOrigin
from securebench.records.plan import BenchmarkName


class Category(StrEnum):
    SAME = "same"
    CHANGED = "changed"
    UNVERIFIABLE = "unverifiable"  # there is nothing to judge, or nothing to judge it with
    ERROR = "error"  # the host or the pack failed
    NOT_JUDGED_BEFORE = "not_judged_before"  # producing had failed; that stays


class Direction(StrEnum):
    IMPROVED = "improved"
    WORSENED = "worsened"
    LEVEL = "level"  # the same score, for another reason or with another assurance


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict in the words of a record. `message` explains and is not compared."""

    status: str
    score: float | None
    assurance: str | None
    failure_reason: str | None
    message: str = field(default="", compare=False)

    def __str__(self) -> str:
        details = [detail for detail in (self.failure_reason, self.assurance) if detail]
        return self.status + (f" ({', '.join(details)})" if details else "")


@dataclass(frozen=True, slots=True)
class Regraded:
    """One attempt. `why` says what changed since, or why there is no new verdict."""

    task_id: str
    attempt: int
    task_type: str
    line: int  # of its record
    category: Category
    old: Verdict
    new: Verdict | None = None
    why: tuple[str, ...] = ()

    @property
    def direction(self) -> Direction | None:
        if self.new is None or self.category is not Category.CHANGED:
            return None
        before, after = self.old.score or 0.0, self.new.score or 0.0
        return Direction.LEVEL if before == after else Direction.IMPROVED if after > before else Direction.WORSENED

    @property
    def stands(self) -> Verdict | None:
        """The verdict to count now."""
        return self.old if self.category is Category.NOT_JUDGED_BEFORE else self.new

    def as_json(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "attempt": self.attempt,
            "task_type": self.task_type,
            "line": self.line,
            "category": str(self.category),
            "direction": None if self.direction is None else str(self.direction),
            "old": asdict(self.old),
            "new": None if self.new is None else asdict(self.new),
            "why": list(self.why),
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """Verdicts counted as a summary counts them."""

    judged: int
    passed: int
    score: float | None

    @classmethod
    def of(cls, verdicts: Iterable[Verdict | None]) -> Totals:
        scores = [(v.status == "passed", v.score) for v in verdicts if v is not None and v.score is not None]
        mean = sum(score or 0.0 for _, score in scores) / len(scores) if scores else None
        return cls(len(scores), sum(passed for passed, _ in scores), mean)


@dataclass(frozen=True, slots=True)
class RegradeReport:
    """Holds no private value of the pack."""

    run: Path
    run_id: str
    benchmark: BenchmarkName
    sealed: str  # complete, interrupted or unsealed
    problems: tuple[str, ...]  # what is not as it was written
    pack: Path
    pack_digest: str
    planned_pack_digest: str
    since: tuple[str, ...]  # what differs from when the run was made
    seed: SeedOrigin
    only: tuple[str, ...]  # the tasks that were asked for; none: all
    not_recorded: int  # planned attempts without a record
    attempts: tuple[Regraded, ...]
    interrupted: bool = False

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(str(one.category) for one in self.attempts)
        found.update(str(one.direction) for one in self.attempts if one.direction is not None)
        return {str(name): found[str(name)] for name in (*Category, *Direction)}

    @property
    def errors(self) -> bool:
        return any(one.category is Category.ERROR for one in self.attempts)

    @property
    def ok(self) -> bool:
        """Every verdict is the one that was recorded, and the run is what was sealed."""
        fine = (Category.SAME, Category.NOT_JUDGED_BEFORE)
        return not self.interrupted and not self.problems and all(one.category in fine for one in self.attempts)

    @property
    def old(self) -> Totals:
        return Totals.of(one.old for one in self.attempts)

    @property
    def new(self) -> Totals:
        return Totals.of(one.stands for one in self.attempts)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "run": str(self.run),
            "run_id": self.run_id,
            "benchmark": self.benchmark.model_dump(mode="json"),
            "sealed": self.sealed,
            "problems": list(self.problems),
            "pack": {
                "path": str(self.pack),
                "digest": self.pack_digest,
                "planned_digest": self.planned_pack_digest,
                "same": self.pack_digest == self.planned_pack_digest,
            },
            "since": list(self.since),
            "seed": str(self.seed),
            "only": list(self.only),
            "interrupted": self.interrupted,
            "not_recorded": self.not_recorded,
            "counts": self.counts,
            "old": asdict(self.old),
            "new": asdict(self.new),
            "attempts": [one.as_json() for one in self.attempts],
        }
