"""The conditions of a gate. Each gets a run and says whether it holds and why, in one line; what cannot be said does
not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from securebench.errors import ConfigError
from securebench.reports.compare.caveats import broken, run_caveats
from securebench.reports.compare.comparison import Match, match_runs
from securebench.reports.compare.words import difference_text, p_equals
from securebench.reports.runs import Run
from securebench.reports.scores import score_of
from securebench.reports.statistics import CONFIDENCE
from securebench.reports.words import counted, share_text

_SLACK = 1e-12  # what adding up scores loses


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a condition held, and what was found."""

    condition: str
    held: bool
    words: str
    notes: tuple[str, ...] = ()  # what is to be known besides

    def as_json(self) -> dict[str, Any]:
        return {"condition": self.condition, "held": self.held, "words": self.words, "notes": list(self.notes)}


class Condition(Protocol):
    def check(self, run: Run) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Intact:
    """Of every gate: all planned attempts have a record, and everything is as it was written. A seal is another
    matter."""

    def check(self, run: Run) -> Outcome:
        missing, notes = run.plan.total - len(run.rows), run_caveats(run)
        if run.seal_status == "broken":
            return Outcome("intact", False, broken(run))
        words = f"{len(run.rows):,} of {run.plan.total:,} planned attempts have a record, as it was written"
        return Outcome("intact", not missing, words, notes)


@dataclass(frozen=True, slots=True)
class MinScore:
    least: float

    def check(self, run: Run) -> Outcome:
        score = run.summary.score
        if score is None:
            return Outcome("min-score", False, f"nothing was judged; at least {share_text(self.least)} is required")
        held = score >= self.least - _SLACK
        return Outcome("min-score", held, f"score {share_text(score)}; at least {share_text(self.least)} is required")


@dataclass(frozen=True, slots=True)
class MinLowerBound:
    """The score is at least this, with the confidence of the interval."""

    least: float

    def check(self, run: Run) -> Outcome:
        estimate = score_of(run.label, run.rows).estimate
        wanted = f"at least {share_text(self.least)} is required"
        if estimate is None:
            return Outcome("min-lower-bound", False, f"nothing was judged; {wanted}")
        low = estimate.interval.low
        words = f"lower end of the {CONFIDENCE * 100:.0f} % interval {share_text(low)}; {wanted}"
        return Outcome("min-lower-bound", low >= self.least - _SLACK, words)


@dataclass(frozen=True, slots=True)
class MaxDrop:
    """Paired by task. With `significant`, a drop that chance can explain is allowed."""

    base: Run
    most: float
    significant: bool = False
    by_id: bool = False

    def check(self, run: Run) -> Outcome:
        name = "max-drop-from"
        if self.base.seal_status == "broken":
            return Outcome(name, False, f"{self.base.label} {broken(self.base)}")
        try:
            match = match_runs(self.base, run, by_id=self.by_id)
        except ConfigError as error:
            return Outcome(name, False, str(error))
        too_far = -match.difference.mean > self.most + _SLACK
        notes = (*(f"{self.base.label} {line}" for line in run_caveats(self.base)), *match.caveats)
        held = not too_far or (self.significant and not match.significant)
        return Outcome(name, held, self._words(match, too_far), notes)

    def _words(self, match: Match, too_far: bool) -> str:
        one = match.difference
        words = f"{difference_text(one)} points against {self.base.label} on {counted(one.tasks, 'task')}; "
        words += f"a drop of at most {self.most * 100:.1f} points is allowed"
        if too_far and self.significant:
            way = "chance does not explain" if match.significant else "chance can explain"
            words += f", and more that {way}: {p_equals(match.adjusted)}"
        return words


@dataclass(frozen=True, slots=True)
class MaxErrors:
    """Attempts on which the host failed."""

    most: int

    def check(self, run: Run) -> Outcome:
        errors = run.summary.errors
        words = f"the host failed on {counted(errors, 'attempt')}; at most {self.most:,} are allowed"
        return Outcome("max-errors", errors <= self.most, words)


@dataclass(frozen=True, slots=True)
class MinTasks:
    least: int

    def check(self, run: Run) -> Outcome:
        judged = len({row.task_id for row in run.rows if row.judged})
        return Outcome(
            "min-tasks", judged >= self.least, f"{counted(judged, 'task')} judged; at least {self.least:,} are required"
        )


@dataclass(frozen=True, slots=True)
class MaxCost:
    """What the producers' models cost. What is not known is not little."""

    most: float

    def check(self, run: Run) -> Outcome:
        cost, unknown = run.summary.cost_usd or 0.0, run.summary.cost_unknown
        words = f"{cost:,.2f} USD; at most {self.most:,.2f} are allowed"
        if unknown:
            words += f"; the price of {counted(unknown, 'attempt')} is not known"
        return Outcome("max-cost", not unknown and cost <= self.most + 1e-9, words)


@dataclass(frozen=True, slots=True)
class Sealed:
    """Everything is as it was sealed; with `key`, by that one; with `trusted`, by one of those that are."""

    key: str | None = None
    trusted: bool = False

    def check(self, run: Run) -> Outcome:
        found, seen = run.verification.key, run.verification
        if found is None:
            return Outcome("require-sealed", False, "there is no valid seal")
        if not seen.ok:
            return Outcome("require-sealed", False, broken(run))
        if self.key is not None and found.id != self.key:
            return Outcome("require-sealed", False, f"sealed by {found.id}; {self.key} is required")
        words = f"{run.seal_status}, sealed by {found.name or found.id} ({found.standing})"
        if self.trusted and found.standing != "trusted":
            return Outcome("require-trusted", False, f"{words}; a key that `securebench keys trust` knows is required")
        unnamed = self.key is None and found.standing != "trusted"
        notes = ("whoever can write its files could have sealed it; --require-trusted or --key says who may",)
        return Outcome("require-trusted" if self.trusted else "require-sealed", True, words, notes if unnamed else ())


@dataclass(frozen=True, slots=True)
class Complete:
    """Every planned attempt was judged."""

    def check(self, run: Run) -> Outcome:
        judged = sum(row.judged for row in run.rows)
        words = f"{judged:,} of {run.plan.total:,} planned attempts were judged"
        return Outcome("require-complete", judged == run.plan.total, words)


@dataclass(frozen=True, slots=True)
class WholePack:
    """Nothing was left out of the pack."""

    def check(self, run: Run) -> Outcome:
        filtered = run.summary.filtered
        return Outcome("require-whole-pack", filtered is None, filtered or f"all {len(run.plan.tasks):,} tasks")


@dataclass(frozen=True, slots=True)
class Assurance:
    """Every verdict was reached in one of these ways."""

    levels: frozenset[str]

    def check(self, run: Run) -> Outcome:
        found = Counter(row.assurance or "unknown" for row in run.rows if row.judged)
        others = {level: count for level, count in found.items() if level not in self.levels}
        words = ", ".join(f"{count:,} {level}" for level, count in sorted(found.items())) or "nothing was judged"
        required = " or ".join(sorted(self.levels))
        return Outcome("require-assurance", bool(found) and not others, f"{words}; {required} is required")


@dataclass(frozen=True, slots=True)
class Gate:
    """A run before its conditions."""

    run: Run
    outcomes: tuple[Outcome, ...]

    @property
    def open(self) -> bool:
        return all(outcome.held for outcome in self.outcomes)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": str(self.run.directory),
            "run_id": self.run.plan.run_id,
            "open": self.open,
            "conditions": [outcome.as_json() for outcome in self.outcomes],
        }


def check_gate(run: Run, conditions: Iterable[Condition]) -> Gate:
    """That the run is intact, and every condition, also after one that does not hold."""
    return Gate(run, tuple(condition.check(run) for condition in (Intact(), *conditions)))
