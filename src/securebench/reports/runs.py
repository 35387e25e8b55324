"""A run directory as reports see it: what was planned, every attempt that counts, the totals, and whether all of it is
what was sealed.

The records are read once, by `evidence.verify`: what is reported is what was checked. Nothing is written there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securebench.errors import IntegrityError
from securebench.evidence.findings import Finding
from securebench.evidence.verify import Verification, find_runs, verify_run
from securebench.records.plan import PLAN_FILE, Plan
from securebench.records.seal import SEAL_FILE
from securebench.records.summary import SUMMARY_FILE, RunPlan, Tally, TesterRunSummary
from securebench.reports.rows import Row, row_of


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `label` is its name among those it is shown with; `rows` are in the plan's order.

    `summary` is counted from the rows, never read from the file; without `wall_seconds`, which no record tells."""

    directory: Path
    label: str
    plan: Plan
    rows: tuple[Row, ...]
    summary: TesterRunSummary
    verification: Verification

    @property
    def sealed(self) -> bool:
        """Whether a valid seal covers it and everything in it is as it was written."""
        return self.verification.ok and self.verification.key is not None

    @property
    def seal_status(self) -> str:
        """`complete`, `interrupted`, or `unsealed`; `broken` where anything is not as it was written."""
        return "broken" if self.faults else str(self.verification.facts.get("status", "unsealed"))

    @property
    def faults(self) -> list[Finding]:
        """What is not as it was written: every error, but for what a run merely lacks that did not end."""
        errors = self.verification.errors
        if self.verification.facts.get("status", "unsealed") != "unsealed":
            return errors
        excused = self._unfinished()
        return [finding for finding in errors if finding.file not in excused]

    @property
    def unfinished(self) -> bool:
        """Whether nothing is wrong with it but that it has not ended."""
        facts = self.verification.facts
        return self.seal_status == "unsealed" and facts["recorded"] < facts["planned"]

    def _unfinished(self) -> frozenset[str]:
        """What findings are about where a run merely did not end: no seal, no summary or an earlier one, attempts
        without a record. A seal that is there and does not hold is another matter, and so is what else is said of the
        plan."""
        excused, errors = {SUMMARY_FILE}, self.verification.errors
        if not os.path.lexists(self.directory / SEAL_FILE):
            excused.add(SEAL_FILE)
        missing = self.verification.facts["recorded"] < self.verification.facts["planned"]
        if missing and sum(finding.file == PLAN_FILE for finding in errors) == 1:
            excused.add(PLAN_FILE)
        return frozenset(excused)

    def attempts(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows of every planned task, also of those without any."""
        found: dict[str, list[Row]] = {task.id: [] for task in self.plan.tasks}
        for row in self.rows:
            found.setdefault(row.task_id, []).append(row)
        return {task: tuple(rows) for task, rows in found.items()}


def load_run(directory: Path, trusted: Mapping[str, str] | None = None, label: str | None = None) -> Run:
    """`trusted` maps ids of keys to names. Raises IntegrityError where there is no plan, or none of ours: without it
    nothing says what the records are. Whatever else is wrong is in `verification`."""
    reader = _Reader()
    verification = verify_run(directory, trusted or {}, on_record=reader.add)
    plan = verification.plan
    if plan is None:
        raise IntegrityError(f"{directory}: {verification.findings[0]}")
    rows = reader.rows
    places = {task.id: place for place, task in enumerate(plan.tasks)}
    rows.sort(key=lambda row: (places.get(row.task_id, len(places)), row.attempt))
    interrupted = verification.facts.get("status") == "interrupted"
    return Run(
        directory, label or plan.run_id, plan, tuple(rows), reader.summary(plan, directory, interrupted), verification
    )


def load_runs(paths: Iterable[Path], trusted: Mapping[str, str] | None = None) -> tuple[Run, ...]:
    """The runs at or beneath these paths, each once, with labels that tell them apart. Raises ConfigError where there
    is none, IntegrityError as `load_run`."""
    directories = list(dict.fromkeys(run for path in paths for run in find_runs(path)))
    runs = [load_run(directory, trusted) for directory in directories]
    labels = _labels(runs)
    return tuple(
        Run(run.directory, label, run.plan, run.rows, run.summary, run.verification)
        for run, label in zip(runs, labels, strict=True)
    )


def _labels(runs: list[Run]) -> list[str]:
    """The run's id; where several have the same, with as much of the end of its path as tells them apart, and a number
    if even that is the same."""
    places: dict[str, list[Path]] = {}
    for run in runs:
        places.setdefault(run.plan.run_id, []).append(run.directory)
    names = [_name(run, places[run.plan.run_id]) for run in runs]
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name} [{seen[name]}]")
    return labels


def _name(run: Run, places: list[Path]) -> str:
    if len(places) == 1:
        return run.plan.run_id
    parts = [place.absolute().parts for place in places]
    depth = next((n for n in range(1, 1 + max(map(len, parts))) if len({one[-n:] for one in parts}) == len(parts)), 1)
    tail = str(Path(*run.directory.absolute().parts[-depth:]))
    return tail if run.directory.name == run.plan.run_id else f"{run.plan.run_id} ({tail})"


class _Reader:
    """Keeps of every record what a row holds, and counts it. A record of nothing that was planned is neither kept nor
    counted: the findings name it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._tally: Tally | None = None

    def add(self, line: int, record: dict[str, Any], plan: Plan) -> None:
        task = plan.by_id.get(record["task_id"])
        if task is None or record["attempt"] > plan.attempts_of(task):
            return
        self.rows.append(row_of(line, record, task))
        if self._tally is None:
            self._tally = Tally(RunPlan.of(plan, Path()))
        self._tally.add(record)

    def summary(self, plan: Plan, directory: Path, interrupted: bool) -> TesterRunSummary:
        tally = self._tally or Tally(RunPlan.of(plan, directory))
        tally.plan, tally.interrupted = RunPlan.of(plan, directory), interrupted
        return tally.summary(0.0)
