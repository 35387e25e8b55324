"""Negative controls on a pack: responses that know only the public side of a task must not pass it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from securebench import _json
from securebench._proc import Forked
from securebench.answers.verdict import TextVerdict
from securebench.benchmark_pack import BenchmarkPack, load_benchmark_pack, sound_rows
from securebench.families.free_response import ContainsAnyRubric
from securebench.families.short_answer import row_key
from securebench.pack_schema import AnyRow
from securebench.verifiers import free_response, multiple_choice, short_answer
from securebench.verifiers.negative_controls import negative_controls

SHARED_BEYOND = 1024 * 1024  # bytes of tasks.jsonl from which sharing out pays
MAX_SHARES = 16

Judge = Callable[[str], TextVerdict]


@dataclass(frozen=True, slots=True)
class Violation:
    """A control that passed a task it must fail."""

    task_id: str
    line: int
    control: str


@dataclass(slots=True)
class ControlReport:
    """What the controls came to over a pack. `constants` are guesses: their rate is information, not a fault."""

    rows: int = 0
    families: Counter[str] = field(default_factory=Counter)
    controlled: int = 0
    violations: list[Violation] = field(default_factory=list)
    constants: Counter[str] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        return not self.violations

    def add(self, other: ControlReport) -> None:
        self.rows += other.rows
        self.controlled += other.controlled
        self.families += other.families
        self.constants += other.constants
        self.violations += other.violations

    def to_bytes(self) -> bytes:
        """For the way between processes of ours; `from_bytes` reads it."""
        violations = [[v.task_id, v.line, v.control] for v in self.violations]
        return _json.dumps([self.rows, self.controlled, dict(self.families), dict(self.constants), violations]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ControlReport:
        rows, controlled, families, constants, violations = json.loads(data)
        found = [Violation(*violation) for violation in violations]
        return cls(rows, Counter(families), controlled, found, Counter(constants))

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "families": dict(self.families),
            "controlled_rows": self.controlled,
            "violations": [{"task_id": v.task_id, "line": v.line, "control": v.control} for v in self.violations],
            "constant_guess_scores": {
                name: round(count / self.controlled, 4) for name, count in self.constants.most_common()
            },
        }


def load_with_controls(manifest: Path, tasks: Path) -> tuple[BenchmarkPack, ControlReport]:
    """Load a pack and give every control to every task whose verdict is a pure function of text.

    A large pack is shared out over the cores by line. Raises PackError as `load_benchmark_pack` does."""
    shares = _shares(tasks)
    helpers = [Forked(partial(_share, manifest, tasks, shares, number)) for number in range(1, shares)]
    own = ControlReport()
    try:
        pack = load_benchmark_pack(manifest, tasks, on_row=partial(_control_own, own, shares))
    finally:
        answers = [helper.result() for helper in helpers]
    for answer in answers:
        own.add(ControlReport.from_bytes(answer))
    own.violations.sort(key=lambda violation: violation.line)
    return pack, own


def _shares(tasks: Path) -> int:
    large = tasks.is_file() and tasks.stat().st_size > SHARED_BEYOND
    return min(len(os.sched_getaffinity(0)), MAX_SHARES) if large else 1


def _owner(line: int, shares: int) -> int:
    """Who looks at a line: 0 is the process that also loads the whole pack, so it gets less, or nothing, of the rest.

    Loading costs half as much as the controls; of three units for each other process it keeps what evens that out."""
    own = max(0, 4 - shares)
    unit = line % (own + 3 * (shares - 1))
    return 0 if unit < own else 1 + (unit - own) // 3


def _share(manifest: Path, tasks: Path, shares: int, number: int) -> bytes:
    report = ControlReport()
    for row, line in sound_rows(manifest, tasks, lambda line: _owner(line, shares) == number):
        _control(report, row, line)
    return report.to_bytes()


def _control_own(report: ControlReport, shares: int, row: AnyRow, line: int) -> None:
    if _owner(line, shares) == 0:
        _control(report, row, line)


def _control(report: ControlReport, row: AnyRow, line: int) -> None:
    report.rows += 1
    report.families[row.family] += 1
    judge = text_judge(row)
    if judge is None:
        return
    report.controlled += 1
    for control in negative_controls(row.family, row.input.model_dump(mode="json", exclude_none=True)):
        if not judge(control.response).passed:
            continue
        if control.must_fail:
            report.violations.append(Violation(row.id, line, control.name))
        else:
            report.constants[control.name.partition(":")[2]] += 1


def text_judge(row: AnyRow) -> Judge | None:
    """The pure verdict of a row's family on a text, or None where code has to run or a model has to judge."""
    if row.family == "multiple_choice":
        return partial(multiple_choice.judge_with_key, multiple_choice.option_key(row.input, row.eval))
    if row.family == "short_answer":
        return partial(short_answer.judge_with_key, row_key(row.input, row.eval))
    if row.family == "free_response" and isinstance(row.eval.rubric, ContainsAnyRubric):
        return partial(free_response.judge_with_key, free_response.rubric_key(row.eval.rubric))
    return None
