"""What the trials of a pack came to, in notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from securebench.audit.pack.entrants import MUTATED
from securebench.audit.pack.notes import Note
from securebench.audit.pack.trials import Trial, TrialReport
from securebench.audit.report.model import Mark
from securebench.benchmark_pack import BenchmarkPack
from securebench.verifiers.base import Status

FEWEST_MUTANTS = 4
"""Mutants below which a row has no score of its own."""
ROW_FLOOR = 0.5
_NOT_JUDGED = (str(Status.ERROR), str(Status.PENDING))


def outcome_notes(pack: BenchmarkPack, report: TrialReport, floor: float) -> Iterator[Note]:
    """`floor` is the share of mutants that the tests of the whole pack must notice; half of it, rows of their own."""
    lines = {entry.id: entry.line for entry in pack.entries}
    for trial in report.broken:
        yield Note(_rule(trial), _said(trial), lines[trial.task_id], trial.task_id)
    for task in report.without_reference:
        yield Note("P21", "nothing shows that it can be solved", lines[task], task)
    by_row: dict[str, list[Trial]] = defaultdict(list)
    for trial in mutants_of(report):
        by_row[trial.task_id].append(trial)
    for task, trials in by_row.items():
        score = score_of(trials)
        if len(trials) >= FEWEST_MUTANTS and score < min(floor, ROW_FLOOR):
            yield Note("P24", f"{score:.0%} of {len(trials)} mutants are noticed", lines[task], task)
    if (every := mutants_of(report)) and score_of(every) < floor:
        detail = f"{score_of(every):.0%} of {len(every)} mutants of all rows are noticed; the floor is {floor:.0%}"
        yield Note("P24", detail, mark=Mark.FAILED)


def mutants_of(report: TrialReport) -> list[Trial]:
    """The mutants that could be judged."""
    return [one for one in report.trials if one.rule == MUTATED and one.outcome not in _NOT_JUDGED]


def score_of(trials: list[Trial]) -> float:
    return sum(trial.held for trial in trials) / len(trials)


def looked_at(report: TrialReport) -> dict[str, str]:
    counts = dict.fromkeys(("J01", "J10", "P02", "P20", "P22"), 0)
    for trial in report.trials:
        counts[trial.rule] = counts.get(trial.rule, 0) + 1
    looked = {rule: f"{count} trials" for rule, count in counts.items()}
    if every := mutants_of(report):
        looked["P24"] = f"{score_of(every):.0%} of {len(every)} mutants are noticed"
    return looked | {"P25": f"{len(report.trials)} trials", "P21": f"{len(report.trials)} trials"}


def _rule(trial: Trial) -> str:
    return "P25" if trial.outcome in _NOT_JUDGED else trial.rule


def _said(trial: Trial) -> str:
    wanted = "must pass" if trial.must_pass else "must fail"
    message = f": {trial.message.strip()[:300]}" if trial.message.strip() and trial.outcome != "passed" else ""
    shown = f"\n{trial.about.strip()}" if trial.about and not trial.held else ""
    return f"{trial.name}: {wanted}, but was {trial.outcome}{message}{shown}"
