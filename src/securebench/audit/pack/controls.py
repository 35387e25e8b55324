"""Negative controls on a pack: responses that know only the public side of a task must not pass it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from securebench import _json
from securebench.answers.verdict import TextVerdict
from securebench.audit.pack.shares import load_with
from securebench.benchmark_pack import BenchmarkPack
from securebench.families.free_response import ContainsAnyRubric
from securebench.families.short_answer import row_key
from securebench.pack_schema import AnyRow
from securebench.verifiers import free_response, multiple_choice, short_answer
from securebench.verifiers.negative_controls import negative_controls

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

    def see(self, row: AnyRow, line: int) -> None:
        """Give a row every control."""
        self.rows += 1
        self.families[row.family] += 1
        judge = text_judge(row)
        if judge is None:
            return
        self.controlled += 1
        for control in negative_controls(row.family, row.input.model_dump(mode="json", exclude_none=True)):
            if not judge(control.response).passed:
                continue
            if control.must_fail:
                self.violations.append(Violation(row.id, line, control.name))
            else:
                self.constants[control.name.partition(":")[2]] += 1

    def add_bytes(self, data: bytes) -> None:
        other = ControlReport.from_bytes(data)
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

    Raises PackError as `load_benchmark_pack` does."""
    pack, report = load_with(manifest, tasks, ControlReport)
    report.violations.sort(key=lambda violation: violation.line)
    return pack, report


def text_judge(row: AnyRow) -> Judge | None:
    """The pure verdict of a row's family on a text, or None where code has to run or a model has to judge."""
    if row.family == "multiple_choice":
        return partial(multiple_choice.judge_with_key, multiple_choice.option_key(row.input, row.eval))
    if row.family == "short_answer":
        return partial(short_answer.judge_with_key, row_key(row.input, row.eval))
    if row.family == "free_response" and isinstance(row.eval.rubric, ContainsAnyRubric):
        return partial(free_response.judge_with_key, free_response.rubric_key(row.eval.rubric))
    return None
